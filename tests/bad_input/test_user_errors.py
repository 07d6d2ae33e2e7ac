"""Tables of what people get wrong: an edit of a config, an option or a command, and words of the line that ends it."""

import json
import shlex
import shutil
from importlib.util import find_spec

import cv2
import numpy as np
import pytest
from apis.small_models import make, write_image
from bad_input.small_runs import DIGITS, refuse, train
from tool_runner import ROOT, assert_one_line, call, succeed

import vt

VT = shlex.quote(f'{ROOT}/configs/vt_resnet/vt-resnet18_digits.py')
IN1K = shlex.quote(f'{ROOT}/configs/vt_resnet/vt-resnet18_8xb32-90e_in1k.py')
ADVANCED = shlex.quote(f'{ROOT}/configs/vt_resnet/vt-resnet18-advanced_digits.py')
LIP = shlex.quote(f'{ROOT}/configs/vt_fpn/vt-fpn_r50_4xb24-48k_lip-473x473.py')
CLASSES = {1: 'apple', 2: 'banana', 3: 'cherry'}
IMAGES = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18-half_digits.py'
model = dict(backbone=dict(num_tokens=4, token_channels=64), head=dict(in_channels=64, num_classes=3))
data_preprocessor = dict(num_classes=3)
pipeline = [dict(type='LoadImageFromFile'), dict(type='Resize', scale=(32, 32)), dict(type='PackInputs')]
images = dict(_delete_=True, type='CustomDataset', data_root='images', pipeline=pipeline)
train_dataloader = dict(batch_size=8, num_workers=0, dataset=dict(data_prefix='train', **images))
val_dataloader = dict(batch_size=8, num_workers=0, dataset=dict(data_prefix='val', **images))
test_dataloader = val_dataloader
train_cfg = dict(max_epochs=1)
val_evaluator = test_evaluator = dict(type='Accuracy', topk=(1,))
"""
MATRIX = "val_evaluator = test_evaluator = [dict(type='ConfusionMatrix'), dict(type='Accuracy', topk=(1,))]\n"
SUPPORT = "val_evaluator = test_evaluator = [dict(type='SingleLabelMetric', items=['support'])]"
MIXUP = "model['train_cfg'] = dict(augments=dict(type='Mixup', alpha=0.5))\ndata_preprocessor['num_classes'] = "
SINGLE = """
model['backbone'] = dict(_delete_=True, type='ResNet', depth=18)
model['head']['in_channels'] = 512
model['neck'] = dict(_delete_=True, type='GlobalAveragePooling')
train_dataloader.update(batch_size=47, drop_last=False)
"""
# Of a config's text, what the line says.
TEXTS = [
    ('a = 1\nb = (\n', "SyntaxError: '(' was never closed (<unknown>, line 2)"),
    (f'{DIGITS}c = somewhere\n', "line 7: NameError: name 'somewhere' is not defined"),
    ("_base_ = 'nowhere.py'\n", ': correct _base_, or the path'),
    (
        "_base_ = '../configs/vt_resnet/vt-resnet18_digits.py'\n",
        ": write _base_ = 'vt::vt_resnet/vt-resnet18_digits.py'",
    ),
    ("_base_ = ['vt::_base_/models/deit-smal.py']\n", ": write _base_ = 'vt::_base_/models/deit-small.py'"),
    ('', 'the config has no model'),
]
# Of lines that are added to the images' config.
LINES = [
    ("val_evaluator['topk'] = (1, 5)", 'in Accuracy: ValueError: Top-5 accuracy is unavailable since the number of ca'),
    (MATRIX, 'save_best=auto: confusion_matrix/result is not a scalar score of val_evaluator'),
    (SUPPORT, 'default_hooks.checkpoint.save_best=single-label/support: the name does not say whether a greater or'),
    (
        "default_hooks = dict(checkpoint=dict(save_best='acc'))",
        'not a scalar score of val_evaluator; set one of accuracy/top1',
    ),
    ("custom_hooks = [dict(type='EarlyStoppingHook', monitor='accuracy')]", 'EarlyStoppingHook.monitor=accuracy: acc'),
    ("param_scheduler = [dict(type='ReduceOnPlateauLR', monitor='top5')]", 'param_scheduler.monitor=top5: top5 is not'),
    ("train_cfg['val_begin'] = 5", 'train_cfg.val_begin=5, but the run has max_epochs=1: it would not validate; lower'),
    ("model['head']['loss'] = dict(type='CrossEntropyLoss', pos_weight=[1.0] * 3)", 'has no effect on a softmax: set '),
    (MIXUP + '7', 'data_preprocessor.num_classes=7, but model.head has 3'),
    (SINGLE, 'while training on the last batch of an epoch, 1 of 47 samples (drop_last=True leaves it out), in '),
    ("pipeline[1] = dict(type='ResizeEdge', scale=32)", 'while collating the first batch, of 8 samples: RuntimeError:'),
]
# Of parts that fail in own code, whose line is named.
STEPS = [line.strip() for line in (ROOT / 'tests/bad_input/steps.py').read_text().splitlines()]
OWN = [
    ("model['data_preprocessor'] = dict(type='Failing')", "raise RuntimeError('this preprocessor is of no use')"),
    ("train_dataloader['dataset']['pipeline'] = [dict(type='Spoil')]", "if 'spoilt' in results['img_path']:"),
]
IMPORT = "custom_imports = dict(imports=['vt', 'bad_input.steps'])\n"
CONFIGS = [*TEXTS, *((IMAGES + lines, words) for lines, words in LINES)]
CONFIGS += [(DIGITS + IMPORT + text, f'bad_input/steps.py, line {STEPS.index(line) + 1})') for text, line in OWN]
HOOK = "custom_hooks=[{'type':'vt.CheckpointHook','filename_tmpl':'model_{}.pth'}]"
ADAMW = "optim_wrapper={'optimizer':{'_delete_':True,'type':'AdamW'}"
# Of --cfg-options, for a small classifier of digits.
OPTIONS = [
    ('train_dataloader.dataset.pipeline.17.scale=3', 'pipeline.17.scale=3: the config has no such key'),
    ('train_dataloader.batch_size=-1', 'batch_size should be a positive integer value, but got batch_size=-1'),
    ('train_cfg.max_epochs=0', 'train_cfg.max_epochs=0 must be at least 1'),
    ('train_cfg.val_interval=0', 'train_cfg.val_interval=0 must be at least 1'),
    ('optim_wrapper.optimizer.lr=high', "optim_wrapper.optimizer (AdamW): TypeError: '<=' not supported between inst"),
    ('speed.matmul_precision=low', "speed.matmul_precision='low' must be one of highest, high, medium"),
    ('default_hooks.checkpoint.out_dir=x', '/tools/publish.py publishes them: remove out_dir'),
    (HOOK, 'vt.CheckpointHook: checkpoints are always epoch_N.pth or iter_N.pth in the work directory'),
    (f"{ADAMW},'paramwise_cfg':{{'custom_keys':{{'head':{{}}}}}}}}", 'lr_mult has no lr to multiply: set'),
    ('model.backbone.relation.num_heads=5', 'layer4.0.relation (TokenTransformer): RuntimeError: unflatten: Provided'),
    ('model.head.num_classes=7', 'model.head has num_classes=7, but the Digits data set has 10 classes; set model.hea'),
    ('train_dataloader.dataset.indices=5', 'batch_size=32, but 5 training samples; lower it to 5 or less'),
    ('train_dataloader.dataset.pipeline.0.scale=2', 'VTResNet: an image of 6x6 pixels is too small'),
]
# Of a tool and its arguments.
PREDICT, SHOW, EXPLORE, PROBE = (
    f'{tool}.py digits.py digits.pth' for tool in ('predict', 'analysis/show_tokens', 'explore', 'probe')
)  # fmt: skip
SHUFFLED = 'test_dataloader.sampler.shuffle='
OVER = 'is an input and would be overwritten: choose another file to write'
COMMANDS = [
    (f'train.py {VT} --find-batch-size --resume', '--find-batch-size requires a single process, without --resume'),
    (f'train.py {VT} --new-schedule', '--new-schedule requires --resume'),
    (f'train.py {VT} --resume nowhere.pth', 'there is no checkpoint to resume from nowhere.pth'),
    (f'train.py {VT} --cfg-options load_from=nowhere.pth', 'there is no checkpoint for load_from: nowhere.pth'),
    (f'train.py {IN1K}', 'there is no data/imagenet: put it there, or correct its path'),
    (f'train.py {ADVANCED}', 'there is no checkpoint work_dirs/resnet18_digits/epoch_15.pth: train the model first,'),
    (f'train.py {VT} --work-dir zero.png', 'is a file where a folder is needed'),
    ('test.py digits.py digits.pth --out m.txt', '--out m.txt must be a .json file for metrics'),
    ('test.py scenes.py scenes.pth --out digits.py/maps', 'cannot write to folder digits.py'),
    ('test.py digits.py digits.pth --heat-maps', '--heat-maps requires --report FOLDER'),
    (f'test.py digits.py digits.pth --report r --cfg-options {SHUFFLED}True', f'set {SHUFFLED}False'),
    (f'test.py {LIP} scenes.pth --tta', 'left and right are classes'),
    (f'{PREDICT} empty', 'empty contains no file that ends in .bmp'),
    ('test.py given.safetensors', 'given.safetensors has several configs beside it, digits.py, moving.py'),
    ('train.py saved', 'saved saved INPUT predicts with the saved model in this folder'),
    ('predict.py saved', 'give images, videos or folders: python'),
    ('predict.py digits.py gone.pth data --out folder.json', 'folder.json is a folder: give the path of a file to wr'),
    (f'{PREDICT} data --out r.txt', '--out r.txt: the name must end in .json or .csv'),
    (f'{PREDICT} data --out-dir data', 'would be overwritten: choose another folder for --out-dir'),
    (f'{PREDICT} data --masks masks', '--masks requires a segmentation model'),
    (f'{PREDICT} data --workers 100000', '--workers 100000 must be from 0 to 256'),
    (f'{PREDICT} data --top-k 0', '--batch-size 8 and --top-k 0 must be at least 1'),
    ('predict.py scenes.py scenes.pth data --masks data', 'data/a.png would be overwritten: choose another folder for'),
    (f'benchmark.py {VT} --sizes 64x', '--sizes 64x is not a size: write 224 or 800x1216'),
    (f'benchmark.py {VT} --devices cuda:99', "device 'cuda:99' cannot be used"),
    (f'benchmark.py {VT} {VT}', 'two models have the same name'),
    (f'{PROBE} --layers backbone.none', "no layer 'backbone.none'; its blocks are backbone.layer1.0"),
    (f'{PROBE} --cfg-options train_dataloader=None', 'training images require train_dataloader'),
    (f'sweep.py {VT} train_cfg.a=1 train_cfg.a=2', 'train_cfg.a is given twice: give all values'),
    (f'sweep.py {VT} model.backbone.out_indices=[1,2', 'cannot be parsed: write a list as [a,b]'),
    ('analysis/report.py runs work_dirs/none', 'there is no work_dirs/none/training.json'),
    ('analysis/show_tokens.py plain.py digits.pth tokens.png', f'tokens.png {OVER}'),
    (f'{SHOW} data/a.png --out ./data/a.png', f'a.png {OVER}'),
    (f'{EXPLORE} --html r.html --inputs no.png', 'there is no no.png: put'),
    ('explore.py moving.py moving.pth --html r.html', 'is a video model'),
]
if find_spec('pytorch_grad_cam'):
    COMMANDS += [('analysis/show_heat_maps.py digits.py digits.pth data/a.png --target ten', 'there is no class ten')]


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Images of three classes; the last of each split is wider than the others."""
    folder = tmp_path_factory.mktemp('late')
    for split in ('train', 'val'):
        for label, name in CLASSES.items():
            (folder / 'images' / split / name).mkdir(parents=True)
            digits = vt.Digits('train' if split == 'train' else 'test', digits=(label,))
            for index in range(16):
                size = (48, 32) if (label, index) == (3, 15) else (32, 32)
                path = folder / 'images' / split / name / f'{index}.png'
                cv2.imwrite(str(path), cv2.resize(digits[index]['img'], size))
    return folder


@pytest.fixture(scope='module')
def models(tmp_path_factory):
    """Small models by short names, two images, and what is no image, no model or in the way."""
    folder = tmp_path_factory.mktemp('command lines')
    names = {'digits': 'vt-resnet18-half_digits', 'scenes': 'vt-fpn_r18_digit-scenes'}
    for name, config in (names | dict(moving='mvit-tiny_moving-digits')).items():
        made = make(folder, config)
        for path in made[:2]:
            path.rename(folder / f'{name}{path.suffix}')
        if name == 'digits':
            (folder / 'data/more').mkdir(parents=True)
            write_image(folder / 'data/a.png', made[3]['inputs'])
    cv2.imwrite(str(folder / 'data/more/b.jpg'), np.zeros((50, 70, 3), np.uint8))
    shutil.copy(folder / 'data/a.png', folder / 'tokens.png')
    for name in ('empty', 'folder.json'):
        (folder / name).mkdir()
    (folder / 'data/notes.txt').write_text('mine')
    (folder / 'zero.png').write_bytes(b'')
    vt.apis.save_model(vt.apis.get_model(folder / 'digits.py', folder / 'digits.pth'), folder / 'saved')
    shutil.copy(folder / 'saved/model.safetensors', folder / 'given.safetensors')
    (folder / 'plain.py').write_text("_base_ = 'digits.py'\n")  # without a work directory
    return folder


@pytest.mark.parametrize(('text', 'words'), CONFIGS, ids=range(len(CONFIGS)))
def test_a_config(text, words, folder):
    assert words in refuse(folder, text)


@pytest.mark.parametrize(('option', 'words'), OPTIONS, ids=[option for option, _ in OPTIONS])
def test_an_option(option, words, folder):
    options = [option, 'default_hooks.checkpoint=None'] if 'hooks' not in option else [option]
    assert words in refuse(folder, DIGITS, options=options)


def files(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob('*') if 'work_dirs' not in path.parts}


@pytest.mark.parametrize(('command', 'words'), COMMANDS, ids=range(len(COMMANDS)))
def test_a_command_line(command, words, models):
    before = files(models)
    assert_one_line(call(*shlex.split(command), cwd=models), words)
    assert files(models) == before
    assert not [*models.rglob('work_dirs/**/*.pth')]


def test_a_traceback_is_shown_on_request_alone_and_lies_in_the_log(tmp_path):
    words = 'error: config.py: while training on the first batch, of 32 samples, in model.head.fc (Linear): Runtime'
    result = train(tmp_path, DIGITS, options=['model.head.in_channels=60'])
    assert_one_line(result, words)
    (log,) = (tmp_path / 'work_dirs/config').glob('*/*.log')
    assert f'(full traceback: {log.relative_to(tmp_path)})' in result.stderr
    assert 'Traceback (most recent call last)' in log.read_text()
    result = train(tmp_path, DIGITS, '--traceback', options=['model.head.in_channels=60'])
    assert result.returncode == 1
    assert 'Traceback (most recent call last)' in result.stderr
    assert words in result.stderr


def test_an_error_that_nobody_foresaw_shows_its_traceback(tmp_path, monkeypatch):
    """And lies in the file in which torchrun looks for it."""
    monkeypatch.setenv('TORCHELASTIC_ERROR_FILE', str(tmp_path / 'error.json'))
    result = train(tmp_path, DIGITS + IMPORT + "custom_hooks = [dict(type='FailAtStep')]\n")
    assert result.returncode == 1
    assert 'Traceback (most recent call last)' in result.stderr
    assert 'RuntimeError: in the midst of it' in result.stderr
    assert json.loads((tmp_path / 'error.json').read_text())['message']['extraInfo']['py_callstack']
    assert 'error: ' not in result.stderr


def test_what_fits_runs_and_a_matrix_is_written(folder):
    """The other side of the cases above, and the test of the same size of batches."""
    early = "custom_hooks = [dict(type='EarlyStoppingHook', monitor='accuracy/top1', patience=5)]\n"
    per_class = "val_evaluator.append(dict(type='SingleLabelMetric', average=None))\n"
    best = "default_hooks = dict(checkpoint=dict(save_best='accuracy/top1'))\n"
    (folder / 'fits.py').write_text(IMAGES + MATRIX + per_class + early + best)
    succeed(call('train.py', 'fits.py', cwd=folder))
    record = json.loads((folder / 'work_dirs/fits/training.json').read_text(), parse_constant=pytest.fail)
    assert record['metrics'].keys() == {'accuracy/top1'}
    tables = record['tables']
    assert len(tables['confusion_matrix/result']) == len(tables['single-label/recall_classwise']) == 3
    succeed(call('test.py', 'fits.py', 'work_dirs/fits/epoch_1.pth', '--out', 'm.json', cwd=folder))
    scores = json.loads((folder / 'm.json').read_text(), parse_constant=pytest.fail)
    assert sum(map(sum, scores['confusion_matrix/result'])) == 48
    wider = ["test_dataloader.dataset.pipeline.1={'_delete_':True,'type':'ResizeEdge','scale':32}"]
    result = call('test.py', 'fits.py', 'work_dirs/fits/epoch_1.pth', cwd=folder, options=wider)
    assert_one_line(result, 'while collating the first batch, of 8 samples: RuntimeError: stack expects')
