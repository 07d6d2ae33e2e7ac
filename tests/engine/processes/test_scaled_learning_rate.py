"""``--auto-scale-lr`` starts from the batch that a config's name tells: ``4xb8`` is 4 processes with 8 images each."""

import re

import pytest
from mmengine.config import Config
from tool_runner import ROOT

NAME = re.compile(r'_(\d+)xb(\d+)-')
CONFIGS = sorted(path for path in ROOT.glob('configs/*/**/*.py') if NAME.search(path.name))


@pytest.mark.parametrize('path', CONFIGS, ids=lambda path: path.stem)
def test_the_base_batch_is_the_names(path):
    processes, batch_size = map(int, NAME.search(path.name).groups())
    cfg = Config.fromfile(path)
    accumulated = cfg.optim_wrapper.get('accumulative_counts', 1)
    assert cfg.train_dataloader.batch_size == batch_size
    assert cfg.auto_scale_lr.base_batch_size == processes * batch_size * accumulated
