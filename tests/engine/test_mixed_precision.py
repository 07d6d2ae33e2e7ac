"""``--amp``: which precision it is, that one key chooses it everywhere, and that bfloat16 has no loss scaler."""

import pytest
import torch
from forked_tools import run_forked
from mmengine.config import Config
from mmengine.optim import AmpOptimWrapper
from tool_runner import ROOT, SMALL_CLASSIFIER, succeed
from torch import nn

from vt.engine.config.steps import apply_amp, autocast_dtype, choose_dtype
from vt.engine.run.mixed_precision import BFloat16AmpOptimWrapper

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
OURS = dict(type='vt.BFloat16AmpOptimWrapper', dtype='bfloat16')
THEIRS = dict(type='AmpOptimWrapper', dtype='float16')


@pytest.fixture
def gpu(monkeypatch):
    """Answers of a GPU with instructions for bfloat16, or without: this machine may have none of both."""

    def pretend(has_bfloat16):
        monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
        monkeypatch.setattr(torch.cuda, 'is_bf16_supported', lambda including_emulation=True: has_bfloat16)

    return pretend


def config(kind='OptimWrapper', **wrapper):
    return Config(dict(optim_wrapper=dict(type=kind, **wrapper)))


NAMED = [(None, True, 'bfloat16'), (None, False, 'float16'), ('bfloat16', True, 'bfloat16')]
NAMED += [('float16', True, 'float16'), (torch.float16, True, 'float16')]


@pytest.mark.parametrize(('named', 'has_bfloat16', 'expected'), NAMED)
def test_the_precision_of_a_gpu_and_the_wrapper_for_it(named, has_bfloat16, expected, gpu):
    gpu(has_bfloat16)
    cfg = config() if named is None else config(dtype=named)
    assert choose_dtype(cfg.optim_wrapper) == expected
    for _ in range(2):  # a second time changes nothing
        apply_amp(cfg, amp=True)
        assert cfg.optim_wrapper.to_dict() == (OURS if expected == 'bfloat16' else THEIRS | dict(loss_scale='dynamic'))
        assert autocast_dtype(cfg) == getattr(torch, expected)  # of validation and tests with fp16=True


@pytest.mark.parametrize('amp', [False, True])
def test_a_config_without_an_optimizer_tests_in_the_precision_of_the_gpu(amp, gpu):
    gpu(True)
    assert autocast_dtype(Config(dict(test_cfg=dict(fp16=amp)))) == (torch.bfloat16 if amp else None)


@pytest.mark.parametrize(
    ('kind', 'dtype', 'has_bfloat16', 'expected'),
    [
        ('AmpOptimWrapper', None, True, OURS),
        ('mmengine.AmpOptimWrapper', 'bfloat16', True, OURS),
        (AmpOptimWrapper, 'float16', True, THEIRS),
        ('BFloat16AmpOptimWrapper', None, True, OURS),
        ('vt.BFloat16AmpOptimWrapper', None, False, OURS),  # that is on any GPU
        ('MyAmpOptimWrapper', 'bfloat16', True, dict(type='MyAmpOptimWrapper', dtype='bfloat16')),
        ('mine.AmpWrapper', 'bfloat16', True, dict(type='mine.AmpWrapper', dtype='bfloat16')),
    ],
)
def test_a_wrapper_for_mixed_precision_asks_for_it_and_a_users_own_stays(kind, dtype, has_bfloat16, expected, gpu):
    gpu(has_bfloat16)
    cfg = config(kind, loss_scale=512.0, dtype=dtype)
    apply_amp(cfg, amp=False)
    scale = {} if expected is OURS else dict(loss_scale=512.0)
    assert cfg.optim_wrapper.to_dict() == expected | scale


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
    for tool, *arguments in (['train.py', CONFIG], ['test.py', CONFIG, 'out/epoch_1.pth']):
        result = succeed(run_forked(tool, *arguments, '--amp', '--work-dir', 'out', cwd=tmp_path, options=options))
        assert f'--amp {dtype}' in result.stdout
    saved = torch.load(tmp_path / 'out/epoch_1.pth', weights_only=False)['optimizer']
    assert ('loss_scaler' in saved) == (dtype == 'float16')
