"""The networks that learn from few images cost the same."""

from pathlib import Path

import pytest

from docs.reports.complexity import count_config

CONFIGS = sorted(Path(__file__).parents[1].glob('configs/*_2560-iters_svrt-1.py'))


@pytest.mark.parametrize('path', CONFIGS, ids=lambda path: path.stem.partition('_')[0])
def test_flops_are_those_of_resnet_within_a_tenth(path):
    resnet = next(path for path in CONFIGS if path.stem.startswith('resnet18-half'))
    (expected, _), (found, _) = (count_config(each, (64, 64)) for each in (resnet, path))
    assert found.flops == pytest.approx(expected.flops, rel=0.1)
