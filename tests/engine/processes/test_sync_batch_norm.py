"""SyncBN on CPUs: what several processes compute is BN of the whole batch."""

import pytest
import torch
from batch_norm_steps import run_shard, run_steps
from process_groups import run_function
from torch import nn

from vt.engine.processes.sync_batch_norm import CPUSyncBatchNorm, use_cpu_sync_batch_norm

OPTIONS = [{}, dict(momentum=None), dict(affine=False), dict(track_running_stats=False, eps=1e-3)]


@pytest.mark.parametrize('shards', [(3, 3), (1, 4), (2, 2, 2, 2), (1, 5, 2, 3)])
@pytest.mark.parametrize('options', OPTIONS)
def test_shards_equal_the_whole_batch(shards, options):
    generator = torch.Generator().manual_seed(0)
    batches = torch.randn((2, 2, sum(shards), 3, 2, 4), generator=generator, dtype=torch.float64) * 3 + 5
    norm = nn.BatchNorm2d(3, **options).double()
    expected, expected_gradients, expected_state, expected_evaluation = run_steps(norm, batches)
    results, gradients, states, evaluations = zip(*run_function(len(shards), run_shard, shards, options, batches))
    tolerance = dict(rtol=1e-10, atol=1e-10)
    torch.testing.assert_close([torch.cat(parts) for parts in zip(*results)], expected, **tolerance)
    torch.testing.assert_close([sum(parts) for parts in zip(*gradients)], expected_gradients, **tolerance)
    for state in states:
        torch.testing.assert_close(state, dict(expected_state), **tolerance)
        torch.testing.assert_close(state, states[0], rtol=0, atol=0)  # so nobody need average them
    if norm.track_running_stats:
        torch.testing.assert_close(torch.cat(evaluations), expected_evaluation, **tolerance)


def test_a_small_variance_keeps_its_digits_in_single_precision():
    """A mean of 3000 is known to 2e-4 there; from sums of squares the variance would be wrong by one half."""
    batches = torch.randn((1, 2, 4, 3, 5, 5), generator=torch.Generator().manual_seed(0))
    batches[:, 0] += 3000
    (expected, *_), *_ = run_steps(nn.BatchNorm2d(3).double(), batches.double())
    results, *_ = zip(*run_function(2, run_shard, (2, 2), {}, batches))
    output = torch.cat([result[0] for result in results])
    torch.testing.assert_close(output.double(), expected, rtol=0, atol=1e-3)


def test_in_one_process_it_is_bn():
    maps = torch.randn(4, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(CPUSyncBatchNorm(3)(maps), nn.BatchNorm2d(3)(maps), rtol=0, atol=0)


def test_replacing_keeps_tensors_names_and_settings():
    options = dict(eps=1e-3, momentum=0.2)
    model = nn.Sequential(nn.Conv2d(2, 3, 1), nn.Sequential(nn.SyncBatchNorm(3, **options)), nn.BatchNorm2d(3))
    before = model.state_dict(keep_vars=True)
    assert use_cpu_sync_batch_norm(model.eval()) is model
    after = model.state_dict(keep_vars=True)
    assert list(after) == list(before)
    assert all(after[name] is tensor for name, tensor in before.items() if isinstance(tensor, nn.Parameter))
    layer = model[1][0]
    assert type(layer) is CPUSyncBatchNorm
    assert (layer.eps, layer.momentum, layer.training) == (1e-3, 0.2, False)
    assert type(model[2]) is nn.BatchNorm2d


def test_one_value_per_channel_is_refused_as_by_bn():
    with pytest.raises(ValueError, match='Expected more than 1 value per channel'):
        CPUSyncBatchNorm(3)(torch.zeros(1, 3, 1, 1))
