"""What several processes compute is BN of the whole batch, and their running statistics are equal."""

import pytest
import torch
from engine.processes.in_each_process import average_buffers, build_norms, run_shard, run_steps
from process_groups import run_function
from torch import nn

from vt.engine.run.sync_batch_norm import CPUSyncBatchNorm, use_cpu_sync_batch_norm

OPTIONS = [{}, dict(momentum=None), dict(affine=False), dict(track_running_stats=False, eps=1e-3)]


@pytest.mark.parametrize('shards', [(1, 4), (1, 5, 2, 3)])
def test_shards_equal_the_whole_batch(shards):
    generator = torch.Generator().manual_seed(0)
    batches = torch.randn((2, 2, sum(shards), 3, 2, 4), generator=generator, dtype=torch.float64) * 3 + 5
    tolerance = dict(rtol=1e-10, atol=1e-10)
    for options, of_processes in zip(OPTIONS, zip(*run_function(len(shards), run_shard, shards, OPTIONS, batches))):
        norm = nn.BatchNorm2d(3, **options).double()
        expected, expected_gradients, expected_state, expected_evaluation = run_steps(norm, batches)
        results, gradients, states, evaluations = zip(*of_processes)
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
    output = torch.cat([results[0] for ((results, *_),) in run_function(2, run_shard, (2, 2), [{}], batches)])
    torch.testing.assert_close(output.double(), expected, rtol=0, atol=1e-3)


def test_in_one_process_it_is_bn():
    maps = torch.randn(4, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(CPUSyncBatchNorm(3)(maps), nn.BatchNorm2d(3)(maps), rtol=0, atol=0)
    with pytest.raises(ValueError, match='Expected more than 1 value per channel'):
        CPUSyncBatchNorm(3)(torch.zeros(1, 3, 1, 1))


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


def test_sync_bn_is_bn_in_one_process_which_says_so_and_stays_in_two(tmp_path, capsys):
    norms = ['BN', 'SyncBN', 'converted BN']
    # mmengine has a class of its own for a layer that it reverts.
    assert build_norms(0, tmp_path, norms[:2]) == [{'BatchNorm2d'}, {'_BatchNormXd'}]
    (line,) = (line for line in capsys.readouterr().out.splitlines() if 'SyncBN is replaced by BN' in line)
    assert 'INFO' in line
    assert 'there is one process' in line
    for found in run_function(2, build_norms, tmp_path, norms):
        assert found == [{'BatchNorm2d'}, {'CPUSyncBatchNorm'}, {'CPUSyncBatchNorm'}]
    assert not [path for path in tmp_path.rglob('*rank0.log') if 'SyncBN is replaced' in path.read_text()]


def test_running_statistics_become_the_average():
    """Updated in place, in each buffer's precision and strides; what is equal stays, to the last bit."""
    for found in run_function(3, average_buffers):
        mean, variance, maps, strides, constant, count = found
        assert mean.tolist() == [2.0] * 3
        assert (variance.tolist(), variance.dtype) == ([1.0] * 4, torch.float64)
        assert torch.equal(maps, torch.arange(16.0).view(1, 2, 2, 4) + 1)
        assert strides.tolist() == [16, 1, 8, 2]
        assert torch.equal(constant, torch.tensor([0.1]))
        assert count.tolist() == 5
    assert average_buffers(7)[0].tolist() == [14.0] * 3  # one process changes nothing
