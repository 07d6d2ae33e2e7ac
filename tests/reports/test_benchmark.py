"""No setting of the benchmark is chosen on test images."""

import pytest
from scipy.stats import ttest_ind

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


@pytest.mark.parametrize('name', TABLES)
def test_a_final_run_reads_the_test_images_once(name):
    for run in read_runs(name):
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
    best = {
        config: own.set_index('learning_rate')['top1'].idxmax()
        for config, own in benchmark.read_field().groupby('config')
    }
    runs = {run.config: read_splits(run)[0].optim_wrapper.optimizer.lr for run in read_runs('fashion-mnist-field')}
    assert best.keys() <= runs.keys()
    assert runs == {config: best.get(config, 1e-3) for config in runs}


def test_other_transformers_are_sorted_by_score():
    rows = [row.split('|')[2:4] for row in benchmark.show_field().splitlines()[2:] if row.startswith('|')]
    best = [max(map(float, scores)) for scores in rows]
    assert best == sorted(best, reverse=True)


def test_a_change_is_from_resnet18_of_the_same_width():
    for width in ('half', 'full'):
        first, *others = benchmark.show_gpu(width).splitlines()[2:]
        assert first.startswith('| resnet18')
        assert '+' not in first
        assert any('+0.' in row for row in others)


def test_a_rate_that_diverged_is_named():
    assert 'diverged' in benchmark.show_gpu_rates()
    assert '89.58, 89.96, 89.72' in benchmark.show_gpu_rates()


def test_the_figure_has_every_model_that_finished():
    pair, field = benchmark.draw().values()
    for axes in pair.axes:
        named = {text.get_text() for text in axes.texts}
        assert {'resnet18', 'resnet18-half', 'vt-resnet18-half', 'vt-resnet18-tuned', 'vt-resnet18-tuned-half'} == named
    models = len(set(benchmark.read_field()['model']))
    assert [len(axes.lines[0].get_xdata()) for axes in field.axes] == [models, models]


def test_a_search_on_a_cpu_is_that_of_the_gpus():
    for run in read_runs(benchmark.FIELD.stem):
        config, splits = read_splits(run)
        assert (splits, run.seed, config.train_cfg.max_epochs) == (['fit', 'held-out'], 9, 2)


def test_a_seed_on_two_devices_counts_once():
    runs = benchmark.read_gpu('seeds')
    gpu = {model: own['top1'].tolist() for model, own in runs.groupby('model')}
    means = {}
    for record in read_json(benchmark.RECORDS / 'fashion-mnist-half.json', 'train it', list):
        model = benchmark.shorten(record['label'])
        means.setdefault(model, []).append((record['metrics']['accuracy/top1'] + gpu[model][record['seed']]) / 2)
    reference, tuned = means['resnet18-half'], means['vt-resnet18-tuned-half']
    low, high = ttest_ind(tuned, reference, equal_var=False).confidence_interval()
    assert f'{(low + high) / 2:+.2f} ± {(high - low) / 2:.2f}' in benchmark.show_both()


def test_a_number_of_images_compares_the_pair():
    scores = {}
    for record in read_json(benchmark.RECORDS / 'fashion-mnist-labels.json', 'train it', list):
        scores.setdefault(record['label'], []).append(record['metrics']['accuracy/top1'])
    rows = [[cell.strip() for cell in row.split('|')[1:-1]] for row in benchmark.show_numbers().splitlines()]
    assert [row[0] for row in rows[2:5]] == ['1,000', '6,000', '60,000']
    first, second = (scores[f'{model}_1000'] for model in rows[0][1:3])
    assert rows[2][1] == ', '.join(f'{score:.2f}' for score in first)
    assert rows[2][2] == ', '.join(f'{score:.2f}' for score in second)
    low, high = ttest_ind(second, first, equal_var=False).confidence_interval()
    assert rows[2][3] == f'{(low + high) / 2:+.2f} ± {(high - low) / 2:.2f}'
