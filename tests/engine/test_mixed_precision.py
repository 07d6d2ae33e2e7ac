"""``--amp``: which precision it is, that one key chooses it everywhere, and that bfloat16 has no loss scaler."""

import copy

import pytest
import torch
from forked_tools import run_forked
from mmengine.config import Config
from mmengine.optim import AmpOptimWrapper
from mmpretrain.registry import MODELS
from tool_runner import ROOT, SMALL_CLASSIFIER, assert_one_line
from torch import nn

from vt.engine.checks.config import check_config
from vt.engine.mixed_precision import BFloat16AmpOptimWrapper
from vt.engine.prepare import choose_dtype, enter_amp
from vt.engine.run_record import digest_config

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
RUN = f"""
_base_ = '{CONFIG}'
optim_wrapper = dict(type='AmpOptimWrapper', loss_scale='dynamic', dtype='float16')
"""
ON_CPU = pytest.mark.skipif(torch.cuda.is_available(), reason='what is said on a CPU')


@pytest.fixture
def gpu(monkeypatch):
    """Answers of a GPU with instructions for bfloat16, or without: this machine may have none of both."""

    def pretend(has_bfloat16):
        monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
        monkeypatch.setattr(torch.cuda, 'is_bf16_supported', lambda including_emulation=True: has_bfloat16)

    before = torch.get_autocast_dtype('cuda')
    yield pretend
    torch.set_autocast_dtype('cuda', before)


def config(**wrapper):
    return Config(dict(optim_wrapper=dict(type='OptimWrapper', **wrapper)))


@pytest.mark.parametrize(
    ('named', 'has_bfloat16', 'expected'),
    [
        (None, True, 'bfloat16'),
        (None, False, 'float16'),
        ('float16', True, 'float16'),
        (torch.float16, True, 'float16'),
        ('bfloat16', True, 'bfloat16'),
    ],
)
def test_the_precision_of_a_gpu_and_the_wrapper_for_it(named, has_bfloat16, expected, gpu):
    gpu(has_bfloat16)
    cfg = config() if named is None else config(dtype=named)
    assert choose_dtype(cfg.optim_wrapper) == expected
    enter_amp(cfg, amp=True)
    own = dict(type='vt.BFloat16AmpOptimWrapper', dtype='bfloat16')
    theirs = dict(type='AmpOptimWrapper', dtype='float16', loss_scale='dynamic')
    assert cfg.optim_wrapper.to_dict() == (own if expected == 'bfloat16' else theirs)
    assert torch.get_autocast_dtype('cuda') == getattr(torch, expected)  # of validation and tests with fp16=True
    again = copy.deepcopy(cfg)
    enter_amp(again, amp=True)
    assert again.to_dict() == cfg.to_dict()


@pytest.mark.parametrize('amp', [False, True])
def test_a_config_without_an_optimizer_tests_in_the_precision_of_the_gpu(amp, gpu):
    gpu(True)
    enter_amp(Config(dict()), amp)
    assert torch.get_autocast_dtype('cuda') == (torch.bfloat16 if amp else torch.float16)


@pytest.mark.parametrize('named', [None, 'bfloat16', 'float16'])
def test_a_config_that_names_mmengines_wrapper_asks_for_it(named, gpu):
    gpu(True)
    cfg = Config(dict(optim_wrapper=dict(type='AmpOptimWrapper', loss_scale=512.0, dtype=named)))
    enter_amp(cfg, amp=False)
    ours = dict(type='vt.BFloat16AmpOptimWrapper', dtype='bfloat16')
    theirs = dict(type='AmpOptimWrapper', dtype='float16', loss_scale=512.0)
    assert cfg.optim_wrapper.to_dict() == (theirs if named == 'float16' else ours)


@pytest.mark.parametrize(
    ('named', 'is_known'),
    [
        ('mmengine.AmpOptimWrapper', True),
        (AmpOptimWrapper, True),
        ('BFloat16AmpOptimWrapper', True),
        ('MyAmpOptimWrapper', False),
        ('mine.AmpWrapper', False),
    ],
)
def test_a_users_own_wrapper_stays(named, is_known):
    cfg = Config(dict(optim_wrapper=dict(type=named, dtype='bfloat16')))
    enter_amp(cfg, amp=False)
    assert cfg.optim_wrapper.type == ('vt.BFloat16AmpOptimWrapper' if is_known else named)


def test_a_config_that_names_bfloat16_has_it_on_any_gpu(gpu):
    gpu(False)
    cfg = Config(dict(optim_wrapper=dict(type='vt.BFloat16AmpOptimWrapper')))
    enter_amp(cfg, amp=False)
    assert cfg.optim_wrapper.to_dict() == dict(type='vt.BFloat16AmpOptimWrapper', dtype='bfloat16')


@ON_CPU
def test_a_cpu_computes_in_bfloat16():
    cfg = config(dtype='float16', loss_scale='dynamic')
    enter_amp(cfg, amp=True)
    assert cfg.optim_wrapper.to_dict() == dict(type='vt.BFloat16AmpOptimWrapper', dtype='bfloat16')


def test_the_key_is_checked_and_known_without_a_wrapper_for_it():
    cfg = Config.fromfile(CONFIG)
    for dtype in ('bfloat16', torch.float16):
        cfg.optim_wrapper.dtype = dtype
        check_config(cfg)


def test_a_digest_tells_precisions_apart(gpu):
    gpu(True)
    digests = set()
    for dtype in (None, 'bfloat16', 'float16'):
        enter_amp(cfg := config(dtype=dtype), amp=dtype is not None)
        digests.add(digest_config(cfg))
    assert len(digests) == 3


@ON_CPU
def test_a_config_of_an_accelerators_mixed_precision_trains_with_amp(tmp_path):
    (tmp_path / 'run.py').write_text(RUN)
    options = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=1']
    arguments = ['run.py', '--amp', '--no-validate', '--work-dir', 'out']
    result = run_forked('train.py', *arguments, cwd=tmp_path, options=options)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / 'out/epoch_1.pth').exists()
    assert '--amp bfloat16' in result.stdout
    # The next run takes float32: the log compares it with the checkpoint's.
    options = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=1']
    result = run_forked('train.py', CONFIG, '--resume', '--work-dir', 'out', cwd=tmp_path, options=options)
    assert result.returncode == 0, result.stderr
    (row,) = [line for line in result.stdout.splitlines() if 'optim_wrapper.dtype' in line]
    assert [cell.strip() for cell in row.split('|')[2:5]] == ['bfloat16', 'None', 'None']


@ON_CPU
def test_a_test_names_its_precision(tmp_path):
    torch.save(MODELS.build(Config.fromfile(CONFIG).model).state_dict(), tmp_path / 'a.pth')
    options = ['test_dataloader.dataset.indices=8']
    result = run_forked('test.py', CONFIG, 'a.pth', '--amp', cwd=tmp_path, options=options)
    assert result.returncode == 0, result.stderr
    assert '--amp bfloat16' in result.stdout


def test_the_key_without_amp_is_one_line(tmp_path):
    options = [*SMALL_CLASSIFIER, 'optim_wrapper.dtype=float16']
    result = run_forked('train.py', CONFIG, '--skip-data-check', cwd=tmp_path, options=options)
    assert_one_line(result, 'optim_wrapper.dtype has no effect without mixed precision: add --amp, or remove it')
    assert '--amp off' in result.stdout


def test_the_forward_pass_is_in_bfloat16_weights_in_float32_and_nothing_is_scaled():
    model = nn.Linear(2, 2).to('cuda' if torch.cuda.is_available() else 'cpu')
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    options = dict(loss_scale=dict(init_scale=2.0), dtype='float16', use_fsdp=True)
    wrapper = BFloat16AmpOptimWrapper(optimizer=optimizer, **options)
    with wrapper.optim_context(model):
        output = model(torch.ones(1, 2, device=model.weight.device))
    wrapper.update_params(output.float().sum())
    assert output.dtype is torch.bfloat16
    assert model.weight.dtype is torch.float32
    assert not hasattr(wrapper, 'loss_scaler')
    scaler = dict(scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, _growth_tracker=0)
    wrapper.load_state_dict(wrapper.state_dict() | dict(loss_scaler=scaler))  # of a run in float16


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')
@pytest.mark.parametrize('dtype', ['bfloat16', 'float16'])
def test_a_gpu_trains_and_tests_in_either(dtype, tmp_path):
    options = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=1', f'optim_wrapper.dtype={dtype}']
    arguments = [CONFIG, '--amp', '--work-dir', 'out']
    result = run_forked('train.py', *arguments, cwd=tmp_path, options=options)
    assert result.returncode == 0, result.stderr
    assert f'--amp {dtype}' in result.stdout
    saved = torch.load(tmp_path / 'out/epoch_1.pth', weights_only=False)['optimizer']
    assert ('loss_scaler' in saved) == (dtype == 'float16')
    result = run_forked('test.py', CONFIG, 'out/epoch_1.pth', '--amp', cwd=tmp_path, options=options)
    assert result.returncode == 0, result.stderr
    assert f'--amp {dtype}' in result.stdout
