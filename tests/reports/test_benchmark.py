"""No setting of the benchmark is chosen on test images."""

import pytest

from docs.reports import benchmark
from docs.reports.scores import read_table
from docs.reports.train import read_runs, read_tables
from vt.engine.config.steps import read_config
from vt.files import read_json
from vt.key_values import parse_options

FINAL = [name for name in read_tables() if name.startswith('fashion-mnist')]
SEARCHED = 'rates-fashion-mnist', benchmark.FIELD.stem, benchmark.TWO_EPOCHS.stem


def runs_of(name):
    """Each run of a table with its config and the splits that it trains on and is validated on."""
    for run in read_runs(name, read_tables()):
        config = read_config(run.config, parse_options(run.settings))
        loaders = config.train_dataloader, config.val_dataloader
        yield run, config, [loader['dataset']['split'] for loader in loaders]


@pytest.mark.parametrize('name', FINAL)
def test_a_final_run_reads_the_test_images_once(name):
    for _, config, splits in runs_of(name):
        assert splits == ['train', 'test']
        assert config.train_cfg.val_interval == config.train_cfg.max_epochs
        assert config.default_hooks.checkpoint.save_best is None


@pytest.mark.parametrize('name', SEARCHED)
def test_a_search_on_a_cpu_reads_two_parts_of_the_training_images_as_on_gpus(name):
    for run, config, splits in runs_of(name):
        assert splits == ['fit', 'held-out']
        if name != SEARCHED[0]:
            assert config.train_cfg.max_epochs == 2
            assert config.optim_wrapper.optimizer.lr == float(run.label.rpartition('_')[2])
            assert name != SEARCHED[1] or run.seed == benchmark.SEED
    for record in read_table(benchmark.RECORDS / f'{name}.json'):  # what was trained, not what is planned
        splits = {name: value for name, value in record['options'].items() if name.endswith('split')}
        assert splits == {'train_dataloader.dataset.split': 'fit', 'val_dataloader.dataset.split': 'held-out'}
    for found in (read_json(path, 'measure it') for path in benchmark.GPUS):
        assert found['search'] == 'train_dataloader.dataset.split=fit val_dataloader.dataset.split=held-out'
        assert {run['seed'] for run in found['rows'] if run['phase'] in ('search', 'field search')} == {9}


def test_a_config_has_the_rate_that_was_best():
    for config, runs in benchmark.read_gpu('search').query('status == "finished"').groupby('config'):
        mean = runs[runs['epochs'] == 3].groupby('learning_rate')['top1'].mean()
        assert read_config(config).optim_wrapper.optimizer.lr == mean.idxmax(), config


def test_the_field_has_the_rates_that_were_better_is_sorted_and_its_best_have_three_seeds():
    ranked = benchmark.rank_field()
    rates = ranked.set_index('model')['learning_rate'].drop(list(benchmark.PAIR))
    runs = {benchmark.shorten(run.label): config for run, config, _ in runs_of('fashion-mnist-field')}
    assert {model: config.optim_wrapper.optimizer.lr for model, config in runs.items()} == rates.to_dict()
    first = [float(each[0]) for each in ranked['each']]
    assert first == sorted(first, reverse=True)
    others = ranked[~ranked['model'].isin(benchmark.PAIR)]
    near = others['top1'] >= others['top1'].max() - 1
    assert (others['each'].map(len) == near.map({True: 3, False: 1})).all()
    assert (others['other'] <= others['top1']).all()
