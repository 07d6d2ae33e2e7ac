"""Paths side by side: each computes the same, the chosen one is named first."""

import pytest
import torch

from vt.analysis.speed.path_times import measure_paths, paths_for, table


def test_every_path_that_can_is_timed_in_both_kinds():
    rows = measure_paths(torch.device('cpu'), [torch.float32], [(1, 8, 6, 7, 3)])
    kinds = [(row['operation'], row['kind'], row['layout']) for row in rows]
    assert len(set(kinds)) == len(kinds) == 8
    for row, shown in zip(rows, table(rows), strict=True):
        assert list(row['milliseconds']) == ['fused', 'plain']
        fastest = min(row['milliseconds'].values())
        assert row['chosen_over_best'] == pytest.approx(row['milliseconds']['fused'] / fastest)
        assert shown['fused'] == f'{row["milliseconds"]["fused"]:.3f}'


def test_the_chosen_path_comes_first():
    assert paths_for(torch.zeros(1, 8, 6, 7), 3) == ['fused', 'plain']
