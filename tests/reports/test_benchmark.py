"""No setting of the benchmark is chosen on test images."""

import pytest

from docs.reports import benchmark
from docs.reports.train import read_runs, read_tables
from vt.checkpoints.files import read_json
from vt.commands.arguments import parse_options
from vt.engine.config_files import read_config

TABLES = [name for name in read_tables() if name.startswith('fashion-mnist')]


def read_splits(run):
    config = read_config(run.config, parse_options(run.settings))
    loaders = config.train_dataloader, config.val_dataloader
    return config, [loader['dataset']['split'] for loader in loaders]


@pytest.mark.parametrize('name', [name for name in TABLES if name.endswith('-rates')])
def test_a_search_reads_two_parts_of_the_training_images(name):
    assert {tuple(read_splits(run)[1]) for run in read_runs(name)} == {('fit', 'held-out')}


@pytest.mark.parametrize('name', [name for name in TABLES if not name.endswith('-rates')])
def test_a_final_run_reads_the_test_images_once(name):
    for run in read_runs(name):
        config, splits = read_splits(run)
        assert splits == ['train', 'test']
        assert config.train_cfg.val_interval == config.train_cfg.max_epochs
        assert config.default_hooks.checkpoint.save_best is None


def test_a_search_on_a_gpu_reads_them_too():
    found = read_json(benchmark.GPU, 'measure it')
    assert found['search'] == 'train_dataloader.dataset.split=fit val_dataloader.dataset.split=held-out'
    assert {*benchmark.read_gpu('search')['seed']} == {9}


def test_a_rate_that_diverged_is_named():
    assert 'diverged' in benchmark.show_gpu_rates()
    assert '89.58, 89.96' in benchmark.show_gpu_rates()
