"""Recomputed blocks train as others do, to the last bit: losses, weights and running statistics."""

from functools import partial
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import OptimWrapper
from run_comparison import differences, final_checkpoint
from tool_runner import ROOT
from torch import nn
from torch.utils.checkpoint import checkpoint

from vt.engine.run.launch import build_runner
from vt.engine.run.sync_batch_norm import CPUSyncBatchNorm
from vt.models.recomputation import keep_statistics_in_backward, recompute

NORMS = dict(usual=nn.BatchNorm2d, cumulative=partial(nn.BatchNorm2d, momentum=None), synchronised=CPUSyncBatchNorm)
NORMS['plain'] = partial(nn.BatchNorm2d, affine=False)
NORMS['instance'] = partial(nn.InstanceNorm2d, track_running_stats=True)
CALLS = dict(reentrant=partial(checkpoint, use_reentrant=True), tidy=partial(checkpoint, use_reentrant=False))
CALLS['recompute'] = recompute


def train(blocks, call, keeps):
    """Two updates of the weights, from two batches each; return losses, weights and statistics."""
    wrapper = OptimWrapper(torch.optim.SGD(blocks.parameters(), 0.1), accumulative_counts=2)
    if keeps:
        keep_statistics_in_backward(wrapper, blocks)
    torch.manual_seed(1)
    losses = []
    for _ in range(4):
        x = torch.randn(4, 3, 6, 6, requires_grad=True)
        for block in blocks:
            x = call(block, x)
        losses.append(x.square().mean())
        wrapper.update_params(losses[-1])
    return [torch.stack(losses), *blocks.state_dict().values()]


@pytest.mark.parametrize('norm', NORMS)
@pytest.mark.parametrize('call', CALLS)
def test_a_batch_counts_once(norm, call):
    def make():
        torch.manual_seed(0)
        parts = (nn.Conv2d(3, 3, 3), NORMS[norm](3), nn.ReLU(), nn.Dropout(0.2))
        frozen = nn.Sequential(nn.Conv2d(3, 3, 1), NORMS[norm](3).eval())  # normalises by its statistics
        return nn.ModuleList([nn.Sequential(*parts), frozen, nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 2, 1))])

    plain = train(make(), lambda block, x: block(x), keeps=False)
    for one, other in zip(plain, train(make(), CALLS[call], keeps=call != 'recompute'), strict=True):
        assert torch.equal(one, other)


def test_a_run_of_a_librarys_backbone_ends_in_the_same_bits(tmp_path):
    """With dropout, stochastic depth, accumulated gradients, Mixup and an average of the weights."""
    states = []
    for with_cp in (False, True):
        cfg = Config.fromfile(ROOT / 'tests/engine/interruption/epochs.py')
        small = dict(depth=18, base_channels=8, stem_channels=8, drop_path_rate=0.2, with_cp=with_cp)
        loader = dict(num_workers=0, persistent_workers=False, dataset=dict(indices=16))
        options = dict(train_dataloader=loader, val_cfg=None, val_dataloader=None, val_evaluator=None)
        options['model.backbone'] = dict(_delete_=True, type='ResNet', **small)
        cfg.merge_from_dict(options | {'model.head.in_channels': 64, 'train_cfg.max_epochs': 1})
        cfg.model.neck, cfg.default_hooks.dry_run = dict(type='GlobalAveragePooling'), None
        cfg.work_dir = str(tmp_path / str(with_cp))
        build_runner(cfg).train()
        states.append(final_checkpoint(Path(cfg.work_dir)))
    assert differences(*states) == []
    assert states[1]['ema_state_dict']['module.backbone.layer1.0.bn1.num_batches_tracked'] == 2
