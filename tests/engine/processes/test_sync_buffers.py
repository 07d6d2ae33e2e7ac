"""BN's running statistics become the average over the processes."""

import torch
from buffer_sync import sync_shard, sync_twice
from process_groups import run_function


def test_three_processes_average_and_keep_what_is_equal():
    expected = [torch.ones(2), torch.tensor([0.1]), torch.tensor(5)]
    for found in run_function(3, sync_shard):
        torch.testing.assert_close(list(found), expected, rtol=0, atol=0)


def test_one_process_changes_nothing():
    assert sync_shard(7)[0].tolist() == [7, 7]


def test_updates_in_place_precisions_and_strides():
    expected = [torch.full((3,), 0.5), torch.full((4,), 0.5).double()]
    for mean, variance, maps, strides in run_function(2, sync_twice):
        torch.testing.assert_close([mean, variance], expected, rtol=0, atol=0)
        assert torch.equal(maps, torch.arange(16.0).view(1, 2, 2, 4) + 0.5)
        assert strides.tolist() == [16, 1, 8, 2]
