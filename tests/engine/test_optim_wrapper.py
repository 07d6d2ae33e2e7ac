"""Mixed precision without a GPU: a config for an accelerator's mixed precision trains on a CPU too."""

import torch
from forked_tools import run_forked
from tool_runner import ROOT, SMALL_CLASSIFIER
from torch import nn

from vt.engine.speed_settings import CPUAmpOptimWrapper

RUN = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18_digits.py'
optim_wrapper = dict(type='AmpOptimWrapper', loss_scale='dynamic', dtype='float16')
"""


def test_a_config_of_an_accelerators_mixed_precision_trains_with_amp(tmp_path):
    (tmp_path / 'run.py').write_text(RUN)
    options = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=1']
    arguments = ['run.py', '--amp', '--no-validate', '--work-dir', 'out']
    result = run_forked('train.py', *arguments, cwd=tmp_path, options=options)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / 'out/epoch_1.pth').exists()


def test_the_forward_pass_is_in_bfloat16_and_weights_in_float32():
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wrapper = CPUAmpOptimWrapper(optimizer=optimizer, loss_scale=dict(init_scale=2.0), dtype='float16', use_fsdp=True)
    with wrapper.optim_context(model):
        output = model(torch.ones(1, 2))
    wrapper.update_params(output.float().sum())
    assert output.dtype is torch.bfloat16
    assert model.weight.dtype is torch.float32
