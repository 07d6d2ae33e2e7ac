"""The command lines of runs as a user calls them, on the embedded digits and scenes, and what they set for speed."""

import json
import os
import pickle
import re
import subprocess
import sys
from argparse import Namespace

import cv2
import numpy as np
import pytest
import torch
from forked_tools import run_forked
from mmengine.config import Config
from mmpretrain.registry import MODELS
from PIL import Image
from tool_runner import ROOT, SMALL_CLASSIFIER, assert_one_line, call, succeed

from vt.apis import get_model
from vt.cli.main import run
from vt.inference.test_set import build_test_set

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18-half_digits.py'
FEW = ['train_cfg.max_epochs=1', *SMALL_CLASSIFIER]
SCENES = ROOT / 'configs/vt_fpn/vt-fpn_r18_digit-scenes.py'
FEW_SCENES = ['train_cfg.max_iters=2', 'train_cfg.val_interval=2', 'param_scheduler.0.end=2']
FEW_SCENES += ['train_dataloader.batch_size=2', 'test_dataloader.batch_size=2', 'model.neck.token_channels=64']
FEW_SCENES += ['val_dataloader.dataset.indices=2', 'test_dataloader.dataset.indices=3']
ADVANCED = ROOT / 'configs/vt_resnet/vt-resnet18-advanced_digits.py'  # the paper's recipe of section 5.2
FEW_ADVANCED = [*FEW, 'default_hooks.logger.interval=1', 'model.teacher.head.in_channels=64']
FEW_ADVANCED += ['model.teacher.backbone.base_channels=8', 'model.teacher.backbone.stem_channels=8']
OFF = ['speed.channels_last=False', 'speed.keep_memory=False', 'speed.token_products=onednn']


@pytest.fixture(scope='module')
def segmentor(tmp_path_factory):
    """The work directory of a trained segmentor; its path holds a space."""
    folder = tmp_path_factory.mktemp('a segmentation')
    assert 'mIoU' in succeed(run_forked('train.py', SCENES, cwd=folder, options=FEW_SCENES)).stdout
    return folder / 'work_dirs/vt-fpn_r18_digit-scenes'


def test_a_training_of_iterations_leaves_its_time_and_the_best_checkpoint(segmentor):
    record = json.loads((segmentor / 'training.json').read_text())
    assert 0 < record['data_seconds'] < record['seconds']
    assert (record['iterations'], record['batch_size']) == (2, 2)
    assert list(segmentor.glob('best_mIoU_iter_2.pth'))
    weights = torch.load(segmentor / 'iter_2.pth', weights_only=False)['state_dict']
    assert weights['neck.tokenizers.0.weight'].shape == (8, 128)


def test_a_training_is_resumed_benchmarked_and_reported(trained_digits, tmp_path):
    before = json.loads((trained_digits.parent / 'training.json').read_text())['seconds']
    assert before > 0
    config = trained_digits.parents[2] / 'config.py'
    arguments = [config, '--resume', trained_digits, '--work-dir', 'work_dirs/config']
    result = succeed(call('train.py', *arguments, cwd=tmp_path, options=['train_cfg.max_epochs=2']))
    assert 'Epoch(train) [2]' in result.stdout
    assert 'Epoch(train) [1]' not in result.stdout
    assert json.loads((tmp_path / 'work_dirs/config/training.json').read_text())['seconds'] > before
    result = succeed(call('test.py', config, 'work_dirs/config/epoch_2.pth', '--benchmark', cwd=tmp_path))
    record = json.loads((tmp_path / 'work_dirs/config.benchmark.json').read_text())
    assert (record['image_shape'], record['batch_size']) == ([3, 32, 32], 32)
    assert record['flops'] > 1e7
    assert 6e5 < record['parameters'] < 1e6
    assert 0 < record['latency_median'] <= record['latency_95']
    assert 'images/s at batch 32' in result.stdout
    result = succeed(call('analysis/report.py', 'runs', 'work_dirs/config', cwd=tmp_path))
    assert f'{record["metrics"]["accuracy/top1"]:.2f}' in result.stdout
    assert 'Running' not in result.stderr  # it reads data alone


def test_amp_no_validate_and_auto_scale_lr(tmp_path):
    """Of a config for an accelerator too, whose wrapper a CPU does not have."""
    arguments = ['--amp', '--no-validate', '--auto-scale-lr', '--work-dir', 'out']
    options = [*FEW, 'train_dataloader.batch_size=8', 'optim_wrapper.accumulative_counts=2']
    wrapper = [f'optim_wrapper.{each}' for each in ('type=AmpOptimWrapper', 'loss_scale=dynamic', 'dtype=float16')]
    result = succeed(call('train.py', CONFIG, *arguments, cwd=tmp_path, options=[*options, *wrapper]))
    assert '--amp bfloat16' in result.stdout or torch.cuda.is_available()
    assert 'Epoch(val)' not in result.stdout
    assert 'lr: 5.0000e-04' in result.stdout
    tested = succeed(call('test.py', CONFIG, 'out/epoch_1.pth', '--amp', cwd=tmp_path, options=[*FEW, *wrapper]))
    assert '--amp bfloat16' in tested.stdout or torch.cuda.is_available()
    result = call('train.py', CONFIG, cwd=tmp_path, options=[*FEW, wrapper[2]])
    assert_one_line(result, 'optim_wrapper.dtype has no effect without mixed precision: add --amp, or remove it')


def test_a_test_writes_predictions_metrics_and_images(trained_digits, tmp_path):
    model = [trained_digits.parents[2] / 'config.py', trained_digits, '--work-dir', 'test']
    few = ['test_dataloader.dataset.indices=5', 'test_dataloader.batch_size=2']
    succeed(call('test.py', *model, '--out', 'predictions.pkl', '--show-dir', 'images', cwd=tmp_path, options=few))
    assert len(pickle.loads((tmp_path / 'predictions.pkl').read_bytes())) == 5
    assert len(list((tmp_path / 'images').rglob('*.png'))) == 5
    succeed(call('test.py', *model, '--out', 'metrics.json', cwd=tmp_path))
    assert 0 <= json.loads((tmp_path / 'metrics.json').read_text())['accuracy/top1'] <= 100
    succeed(call('test.py', *model, '--out', 'tta.pkl', '--tta', cwd=tmp_path, options=few))
    scores = torch.stack([each['pred_score'] for each in pickle.loads((tmp_path / 'tta.pkl').read_bytes())])
    built = get_model(model[0], trained_digits)
    images = torch.stack([build_test_set(built.cfg)[index]['inputs'] for index in range(5)])
    views = [built.test_step(dict(inputs=each, data_samples=None)) for each in (images, images.flip(-1))]
    views = torch.stack([torch.stack([sample.pred_score for sample in view]) for view in views])
    torch.testing.assert_close(scores, views.mean(dim=0), rtol=0, atol=1e-6)
    assert (views[0] - views[1]).abs().max() > 1e-5


def test_a_test_writes_predicted_maps_and_overlays(segmentor):
    folder = segmentor.parents[1]
    arguments = ['test.py', SCENES, segmentor / 'iter_2.pth']
    succeed(call(*arguments, '--out', 'maps', '--show-dir', 'images', cwd=folder, options=FEW_SCENES))
    names = ['test_000000.png', 'test_000001.png', 'test_000002.png']
    for kind in ('maps', 'images'):
        assert sorted(path.name for path in (folder / kind).iterdir()) == names
    assert np.asarray(Image.open(folder / 'maps' / names[0])).max() < 11
    assert cv2.imread(str(folder / 'images' / names[0])).shape == (128, 256, 3)  # labels beside the prediction
    assert ' mIoU' in succeed(call('analysis/report.py', 'runs', segmentor, cwd=folder)).stdout
    succeed(call(*arguments, '--tta', '--amp', '--out', 'tta', cwd=folder, options=FEW_SCENES))
    assert len(list((folder / 'tta').glob('*.png'))) == 3


def test_models_side_by_side(tmp_path):
    twin = 'resnet18-half'  # which has as many classes as its data
    arguments = [twin, CONFIG, '--sizes', '64x32', '--batch-sizes', '1', '2', '--rounds', '3', '--out', 'b.json']
    result = succeed(call('benchmark.py', *arguments, cwd=tmp_path))
    record = json.loads((tmp_path / 'b.json').read_text())
    measured = [(entry['batch_size'], *entry['size'], entry['kind'], entry['model']) for entry in record['results']]
    runs = [(n, 64, 32, kind) for n in (1, 2) for kind in ('inference', 'training')]
    assert measured == [(*run, name) for run in runs for name in (twin, CONFIG.stem)]
    assert all(len(entry['seconds']) == 3 for entry in record['results'])
    assert record['versions']['torch']
    assert 'Inference: batch 2, 64x32, float32' in result.stdout


@pytest.mark.slow
def test_two_processes_on_the_cpu(trained_digits, tmp_path):
    config = trained_digits.parents[2] / 'config.py'
    env = dict(os.environ, PYTHON=sys.executable, CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1')
    for script, arguments in [('dist_train.sh', [config, '2']), ('dist_test.sh', [config, trained_digits, '2'])]:
        command = ['bash', ROOT / 'tools' / script, *arguments, '--work-dir', 'two']
        command += ['--cfg-options', 'model.backbone.norm_cfg.type=SyncBN']
        result = succeed(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env))
        assert 'accuracy/top1' in result.stdout
        assert 'channels_last=True' in result.stdout
    assert (tmp_path / 'two/epoch_1.pth').exists()


def test_both_losses_are_shown_and_a_checkpoint_holds_a_plain_classifier_and_its_average(tmp_path):
    cfg = Config.fromfile(ADVANCED)
    cfg.model.teacher.backbone.update(base_channels=8, stem_channels=8)
    cfg.model.teacher.head.in_channels = 64
    torch.save(dict(state_dict=MODELS.build(cfg.model.teacher).state_dict()), tmp_path / 'teacher.pth')
    options = [*FEW_ADVANCED, f'model.teacher_checkpoint={tmp_path / "teacher.pth"}']
    output = succeed(call('train.py', ADVANCED, '--work-dir', 'out', cwd=tmp_path, options=options)).stdout
    assert output.count('SyncBN is replaced by BN, because there is one process') == 1
    lines = [line for line in output.splitlines() if 'Epoch(train)' in line]
    assert len(lines) == 2
    for line in lines:
        losses = {name: float(value) for name, value in re.findall(r'(loss\w*): (\S+)', line)}
        assert losses['loss_cls'] > 0 < losses['loss_distillation']
        assert losses['loss'] == pytest.approx(losses['loss_cls'] + losses['loss_distillation'], abs=2e-4)

    checkpoint = torch.load(tmp_path / 'out/epoch_1.pth', weights_only=False)
    cfg = Config.fromfile(ROOT / 'configs/vt_resnet/vt-resnet18_digits.py')
    cfg.model.backbone.update(num_tokens=4, token_channels=64)
    cfg.model.head.in_channels = 64
    plain = MODELS.build(cfg.model)
    plain.load_state_dict(checkpoint['state_dict'])
    average = checkpoint['ema_state_dict']
    assert set(average) == {'steps'} | {f'module.{name}' for name in plain.state_dict()}
    assert average['steps'] == 2
    # Validation and tests take the average; the weights that training goes on from have moved further.
    assert not torch.equal(average['module.head.fc.weight'], checkpoint['state_dict']['head.fc.weight'])
    assert len(checkpoint['optimizer']['state']) == len(list(plain.parameters()))
    options = [*FEW_ADVANCED, 'model.teacher.type=TimmClassifier']  # a test builds no teacher
    result = succeed(call('test.py', ADVANCED, 'out/epoch_1.pth', cwd=tmp_path, options=options))
    assert 'accuracy/top1' in result.stdout


def speed_line(result):
    (line,) = [line for line in succeed(result).stdout.splitlines() if 'Speed: ' in line]
    return line.split('Speed: ')[1]


@pytest.mark.skipif(' ' in torch.__file__, reason="we refuse to compile with a space in PyTorch's path")
def test_settings_turned_off_and_on_again(tmp_path, monkeypatch):
    """A run goes on with other settings, and with averaged weights and optimizer states of another layout."""
    monkeypatch.delenv('GLIBC_TUNABLES', raising=False)
    monkeypatch.setenv('OMP_NUM_THREADS', '1')
    config = tmp_path / 'averaged.py'
    config.write_text(f"_base_ = {str(CONFIG)!r}\ncustom_hooks = [dict(type='EMAHook')]\n")
    arguments = [config, '--work-dir', 'run', '--no-validate']
    options = [*SMALL_CLASSIFIER, *OFF, 'train_cfg.max_epochs=1', 'optim_wrapper.optimizer.fused=True']
    line = speed_line(run_forked('train.py', *arguments, cwd=tmp_path, options=options))
    assert line.startswith('freed memory not kept; 1 thread; --amp off; --cfg-options speed: channels_last=False, ')
    assert 'token_products=onednn' in line
    options = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=2', 'optim_wrapper.optimizer.fused=True']
    options += ['randomness.deterministic=True']
    line = speed_line(run_forked('train.py', *arguments, '--resume', '--amp', cwd=tmp_path, options=options))
    assert '--amp bfloat16; --cfg-options speed: channels_last=True, ' in line
    assert 'token_products=blas' in line  # where randomness is deterministic, nothing is measured
    options = [*SMALL_CLASSIFIER, 'speed.compile.backend=eager', 'test_dataloader.dataset.indices=8']
    arguments = [config, 'run/epoch_2.pth', '--tta', '--work-dir', 'run']
    result = run_forked('test.py', *arguments, cwd=tmp_path, options=options)
    assert "compile={'backend': 'eager'}" in speed_line(result)
    assert 'accuracy/top1' in result.stdout


@pytest.mark.parametrize(
    ('chosen', 'name', 'expected'),
    [
        ({}, 'PYTORCH_NVML_BASED_CUDA_CHECK', '1'),  # look for a GPU without starting it
        ({'GOMP_SPINCOUNT': '5'}, 'GOMP_SPINCOUNT', '5'),
        ({'OMP_WAIT_POLICY': 'active'}, 'GOMP_SPINCOUNT', None),
    ],
)
def test_what_the_environment_does_not_say_is_set(chosen, name, expected, monkeypatch):
    for variable in ('PYTORCH_NVML_BASED_CUDA_CHECK', 'GOMP_SPINCOUNT', 'OMP_WAIT_POLICY'):
        monkeypatch.setenv(variable, '')  # so that it is as before in the end
        monkeypatch.delenv(variable)
    for variable, value in chosen.items():
        monkeypatch.setenv(variable, value)
    found = []
    monkeypatch.setattr(sys.modules[__name__], 'command', lambda args: found.append(os.environ.get(name)))
    run(f'{__name__}:command', Namespace(traceback=False), package='')
    assert found == [expected]


command = None


def test_variables_are_set_before_pytorch_is_imported(tmp_path, monkeypatch):
    monkeypatch.delenv('GOMP_SPINCOUNT', raising=False)
    monkeypatch.delenv('OMP_WAIT_POLICY', raising=False)
    (tmp_path / 'config.py').write_text("import os\nprint('spins:', os.environ.get('GOMP_SPINCOUNT'))\n")
    command = [sys.executable, ROOT / 'tools/train.py', 'config.py']
    env = os.environ | dict(OMP_DISPLAY_ENV='verbose')
    result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert 'spins: 20000' in result.stdout
    if 'OMP_NUM_THREADS = ' in result.stderr:  # GNU OpenMP, as in PyTorch for Linux
        assert "GOMP_SPINCOUNT = '20000'" in result.stderr
