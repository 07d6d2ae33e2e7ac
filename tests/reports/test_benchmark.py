"""No setting of the benchmark is chosen on test images."""

import pytest

from docs.reports import benchmark
from docs.reports.train import read_runs, read_tables
from vt.commands.arguments import parse_options
from vt.engine.prepare import read_config
from vt.files import read_json

TABLES = [name for name in read_tables() if name.startswith('fashion-mnist')]


def read_splits(run):
    config = read_config(run.config, parse_options(run.settings))
    loaders = config.train_dataloader, config.val_dataloader
    return config, [loader['dataset']['split'] for loader in loaders]


@pytest.mark.parametrize('name', TABLES)
def test_a_final_run_reads_the_test_images_once(name):
    for run in read_runs(name, read_tables()):
        config, splits = read_splits(run)
        assert splits == ['train', 'test']
        assert config.train_cfg.val_interval == config.train_cfg.max_epochs
        assert config.default_hooks.checkpoint.save_best is None


@pytest.mark.parametrize('path', benchmark.GPUS, ids=lambda path: path.parent.name)
def test_a_search_reads_two_parts_of_the_training_images(path):
    found = read_json(path, 'measure it')
    assert found['search'] == 'train_dataloader.dataset.split=fit val_dataloader.dataset.split=held-out'
    assert {run['seed'] for run in found['rows'] if run['phase'] in ('search', 'field search')} == {9}


def test_a_config_has_the_rate_that_was_best():
    scores = benchmark.read_gpu('search').query('status == "finished"')
    for config, runs in scores.groupby('config'):
        mean = runs[runs['epochs'] == 3].groupby('learning_rate')['top1'].mean()
        assert read_config(config).optim_wrapper.optimizer.lr == mean.idxmax(), config


def test_other_transformers_have_the_rate_that_was_better():
    ranked = benchmark.rank_field().set_index('model')['learning_rate'].drop(list(benchmark.PAIR))
    runs = {
        benchmark.shorten(run.label): read_splits(run)[0] for run in read_runs('fashion-mnist-field', read_tables())
    }
    assert {model: config.optim_wrapper.optimizer.lr for model, config in runs.items()} == ranked.to_dict()


def test_the_field_is_sorted_and_its_best_have_three_seeds():
    ranked = benchmark.rank_field()
    first = [float(each[0]) for each in ranked['each']]
    assert first == sorted(first, reverse=True)
    others = ranked[~ranked['model'].isin(benchmark.PAIR)]
    near = others['top1'] >= others['top1'].max() - 1
    assert (others['each'].map(len) == near.map({True: 3, False: 1})).all()
    assert (others['other'] <= others['top1']).all()


def test_the_figure_has_every_model_that_finished():
    pair, field = benchmark.draw().values()
    for axes in pair.axes:
        named = {text.get_text() for text in axes.texts}
        assert {'resnet18', 'resnet18-half', 'vt-resnet18-half', 'vt-resnet18-tuned', 'vt-resnet18-tuned-half'} == named
    models = benchmark.read_field()['model'].nunique()
    assert [[len(line.get_xdata()) for line in axes.lines] for axes in field.axes] == [[models - 2, 2]] * 2


@pytest.mark.parametrize('path', [benchmark.FIELD, benchmark.TWO_EPOCHS], ids=lambda path: path.stem)
def test_two_epochs_on_a_cpu_are_those_of_the_gpus(path):
    for run in read_runs(path.stem, read_tables()):
        config, _ = read_splits(run)
        assert config.train_cfg.max_epochs == 2
        assert config.optim_wrapper.optimizer.lr == float(run.label.rpartition('_')[2])
        assert path != benchmark.FIELD or run.seed == benchmark.SEED


@pytest.mark.parametrize('name', ['rates-fashion-mnist', benchmark.FIELD.stem, benchmark.TWO_EPOCHS.stem])
def test_a_search_on_a_cpu_reads_no_test_image(name):
    assert all(read_splits(run)[1] == ['fit', 'held-out'] for run in read_runs(name, read_tables()))
    for record in read_json(benchmark.RECORDS / f'{name}.json', 'train it'):  # what was trained, not what is planned
        splits = {name: value for name, value in record['options'].items() if name.endswith('split')}
        assert splits == {'train_dataloader.dataset.split': 'fit', 'val_dataloader.dataset.split': 'held-out'}
