"""The tables of the page on Fashion-MNIST: runs on a CPU, and what GPUs measured."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vt.analysis.scores import Scores, describe, mean_margin
from vt.files import read_json

from .markdown import BENCHMARKS, RECORDS, plus_minus, short_name, table
from .scores import by_label, compare_two, describe_source, read_table, tell_change
from .speeds import read_medians

GPU = BENCHMARKS / 'nvidia-h100/fashion-mnist.json'
GPUS = GPU, BENCHMARKS / 'nvidia-h200/fashion-mnist.json'  # the second: other vision transformers
FIGURES = 'projects/small_data/figures'
ALL = 60_000  # training images
LATENCY = BENCHMARKS / 'fashion-mnist_cpu.json'
FIELD = RECORDS / 'rates-fashion-mnist-field.json'
TWO_EPOCHS = RECORDS / 'two-epochs-fashion-mnist.json'  # beside them: the pair, and more seeds
SEED = 9  # of searches
TABLES = 'fashion-mnist-half', 'fashion-mnist-labels', 'rates-fashion-mnist', FIELD.stem, TWO_EPOCHS.stem  # on a CPU
PAIR = 'resnet18', 'vt-resnet18-tuned'
FIELD_LATENCIES = sorted(BENCHMARKS.glob('fashion-mnist-field-*px_cpu.json'))  # a file for each size of images


def show_runs(name: str) -> str:
    """A row for each model of a table: scores with the 95 % interval of their mean, costs, and seconds per epoch.

    Of several devices, the medians of each.
    """
    records = read_table(RECORDS / f'{name}.json')
    rows = describe(records)
    times = pd.DataFrame([(run['label'], run['device'], _seconds_per_epoch(run)) for run in records])
    medians = times.groupby([0, 1])[2].median().map('{:.0f}'.format)  # sorted, as the origin below names the devices
    for row, (label, scores) in zip(rows, by_label(records).items()):
        row['mean'] += plus_minus(mean_margin(scores, [scores]))
        row['s per epoch'] = ', '.join(medians[label])
    return f'{table(rows)}\n\n{describe_source(records, name)}'


def show_numbers() -> str:
    """A row for each number of training images: scores of the pair at half width, and their difference."""
    records = read_table(RECORDS / 'fashion-mnist-labels.json')
    whole = [
        run | dict(label=f'{shorten(run["label"])}_{ALL}') for run in read_table(RECORDS / 'fashion-mnist-half.json')
    ]
    rows: dict[str, list[tuple[str, Scores]]] = {}
    for label, scores in by_label([*records, *whole]).items():
        model, number = label.rsplit('_', 1)
        rows.setdefault(number, []).append((model, scores))
    told = []
    for number, ((first, reference), (second, scores)) in rows.items():
        told.append(
            {
                'training images': f'{int(number):,}',
                first: ', '.join(map('{:.2f}'.format, reference.scores)),
                second: ', '.join(map('{:.2f}'.format, scores.scores)),
                'change (95 %)': tell_change(compare_two(scores, reference)),
            }
        )
    return f'{table(told)}\n\n{describe_source(records, "fashion-mnist-labels")}'


def _seconds_per_epoch(run: dict) -> float:
    return run['seconds'] / int(run['length'].split()[0])


def read_gpu(phase: str, path: Path = GPU) -> pd.DataFrame:
    """Return the runs of a phase on a GPU, a row each; ``told`` is a score or ``diverged``."""
    rows = pd.DataFrame(read_json(path, 'measured on a GPU', keys=['rows'])['rows']).query('phase == @phase')
    names = rows['config'].str.extract(r'/([^/]+)\.py$', expand=False)
    told = rows['top1'].map('{:.2f}'.format).where(rows['status'] == 'finished', 'diverged')
    device = path.parent.name.removeprefix('nvidia-').upper()
    return rows.assign(model=names.map(shorten), told=told, device=device)


def show_gpu(width: str) -> str:
    """A row for each model of the pair at ``half`` or ``full`` width: its seeds on the test images, and its costs.

    ``change`` is the difference from ResNet-18's mean, with Welch's 95 % interval.
    """
    runs, latency = read_gpu('seeds'), read_latency([LATENCY])
    runs = runs[runs['model'].str.endswith('-half') == (width == 'half')]
    rows, reference = [], None
    for model, own in runs.groupby('model'):
        first = own[own['status'] == 'finished'].iloc[0]
        row = first[['model', 'learning_rate', 'flops', 'parameters']].to_dict()
        row |= dict(each=own['told'].tolist(), latency=latency[model])
        if (own['status'] == 'finished').all():
            scores = to_scores(own)
            reference = reference or scores
            row['mean'] = f'{scores.mean:.2f}{plus_minus(mean_margin(scores, [scores]))}'
            if scores is not reference:
                row['change'] = tell_change(compare_two(scores, reference))
        rows.append(row)
    forms = {
        'model': '{model}',
        'learning rate': '{learning_rate:g}',
        'top-1 (%), each seed': '{each}',
        'mean': '{mean}',
        'change (95 %)': '{change}',
        **tell_costs(LATENCY),
    }
    return table(rows, forms)


def show_both() -> str:
    """The difference at half width over the CPU's and the GPU's runs: a seed's two runs count as one, their mean."""
    both = by_label(read_table(RECORDS / 'fashion-mnist-half.json'))
    gpu = dict(iter(read_gpu('seeds').groupby('model')))
    means = []
    for label, scores in both.items():
        own = gpu[shorten(label)].set_index('seed')['top1']
        means.append(replace(scores, scores=tuple((own[list(scores.seeds)] + scores.scores) / 2)))
    reference, tuned = means
    return (
        'With the runs of both devices, the tuned VT-ResNet-18 differs from ResNet-18 at half width by '
        f'{tell_change(compare_two(tuned, reference))}\n'
        "points (a seed's two runs count as one, their mean; Welch's interval). This comparison was not planned."
    )


def read_latency(paths: Sequence[Path]) -> dict[str, float]:
    """Median seconds of one image by model, measured on a CPU by ``tools/benchmark.py``."""
    speeds = read_medians(paths).query('batch_size == 1')
    return dict(zip(speeds['model'].map(shorten), speeds['median']))


def tell_costs(path: Path) -> dict[str, str]:
    """Columns of costs, with the latencies of a file."""
    return {'MFLOPs': '{flops:M.1f}', 'M params': '{parameters:M.2f}', tell_latency(path): '{latency:ms}'}


def tell_latency(path: Path) -> str:
    """The title of the latencies of a file, with their processor."""
    processor = read_json(path, 'measured by tools/benchmark.py', keys=['device'])['device']
    return f'ms, one image, {re.sub(r"[(]R[)]| Processor| [(]family.*", "", processor)}'


def shorten(config: str) -> str:
    """A model's name: a config's without its data."""
    return short_name(config).replace('_fashion-mnist', '')


def draw() -> dict[str, Figure]:
    """The page's figures by their paths: scores against FLOPs and latency, of the pair and of the others."""
    return {f'{FIGURES}/scores.png': _draw_pair(), f'{FIGURES}/field.png': _draw_field()}


def _draw_pair() -> Figure:
    """Scores on the test images with the 95 % intervals of their means."""
    runs, latency = read_gpu('seeds'), read_latency([LATENCY])
    figure, panels = _begin('top-1 on Fashion-MNIST, %', LATENCY, height=4.5)
    for model, own in runs.groupby('model'):
        if (own['status'] == 'finished').all():
            scores = to_scores(own)
            for axes, cost in zip(panels, (scores.flops / 1e6, 1e3 * latency[model])):
                axes.errorbar(cost, scores.mean, yerr=mean_margin(scores, [scores]), fmt='o', capsize=3)
                _name(axes, model, cost, scores.mean)
    return figure


def _draw_field() -> Figure:
    """Scores on the held-out images after two epochs, the pair's and the best ten of the others with their names."""
    ranked = rank_field()
    is_pair = ranked['model'].isin(PAIR)
    figure, panels = _begin('top-1 on held-out images after two epochs, %', FIELD_LATENCIES[0], height=6)
    for rows, marker, named in ((ranked[~is_pair], 'o', 10), (ranked[is_pair], 's', 2)):
        for axes, costs in zip(panels, (rows['flops'] / 1e6, 1e3 * rows['latency'])):
            axes.plot(costs, rows['top1'], marker)
            for model, cost, score in [*zip(rows['model'], costs, rows['top1'])][:named]:
                _name(axes, model, cost, score)
    return figure


def _begin(score: str, latencies: Path, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of two panels, for FLOPs and latency."""
    figure = Figure(figsize=(11, height), layout='constrained')
    panels = figure.subplots(1, 2, sharey=True)
    for axes in panels:
        axes.margins(x=0.45)  # names are beside the points
    panels[0].set(xlabel='MFLOPs', ylabel=score)
    panels[1].set(xlabel=tell_latency(latencies))
    return figure, panels


def _name(axes: Axes, model: str, cost: float, score: float) -> None:
    axes.annotate(model, (cost, score), textcoords='offset points', xytext=(6, 4), fontsize='small')


def to_scores(runs: pd.DataFrame) -> Scores:
    """The scores of one model's runs on the GPU."""
    first = runs.iloc[0]
    return Scores(
        seeds=tuple(runs['seed']),
        scores=tuple(runs['top1']),
        metric='top-1',
        flops=int(first['flops']),
        parameters=int(first['parameters']),
    )


def show_gpu_rates() -> str:
    """A row for each model of the pair: scores on the held-out images by learning rate."""
    runs = read_gpu('search')
    runs = runs[runs['epochs'] == runs['epochs'].min()]
    told = runs.groupby(['model', 'learning_rate'], sort=False)['told'].agg(', '.join).unstack().sort_index(axis=1)
    told.columns = [f'{rate:g}' for rate in told.columns]
    return table(told.fillna('-').reset_index().to_dict('records'))


def read_field() -> pd.DataFrame:
    """Return the runs of two epochs, on all devices: of the other vision transformers, and of the pair."""
    gpus = (read_gpu('field search', path) for path in GPUS)
    return pd.concat([*gpus, *map(_read_field_cpu, (FIELD, TWO_EPOCHS))], ignore_index=True)


def _read_field_cpu(path: Path) -> pd.DataFrame:
    """The runs of a table in columns of :func:`read_gpu`; their labels end in learning rates."""
    rows = []
    for run in read_table(path):
        costs = dict(flops=run['flops'], parameters=run['parameters'])
        scores = dict(seed=run['seed'], top1=run['metrics']['accuracy/top1'])
        rate = float(run['label'].rpartition('_')[2])
        model = shorten(Path(run['config']).stem)
        run_of = dict(config=run['config'], model=model, learning_rate=rate, epochs=2, device='CPU')
        rows.append(run_of | scores | costs)
    return pd.DataFrame(rows)


def rank_field() -> pd.DataFrame:
    """A row for each model after two epochs, best first: its ``scores`` at the better rate of the search, and costs.

    ``top1`` and ``learning_rate`` are of the search, ``each`` has the scores of all seeds, the search's first, and
    ``other`` is the score of the other rate.
    """
    latency = read_latency(FIELD_LATENCIES)
    runs = read_field()
    devices = runs.groupby(['model', 'learning_rate'])['device'].agg(lambda own: list(dict.fromkeys(own)))
    keys = ['model', 'learning_rate', 'seed']  # two were searched on two GPUs: their means
    runs = runs.groupby(keys, as_index=False).agg(dict(top1='mean', epochs='first', flops='first', parameters='first'))
    rows = []
    for model, own in runs.groupby('model'):
        best, *others = own.query('seed == @SEED').sort_values('top1', ascending=False).to_dict('records')
        seeds = own[own['learning_rate'] == best['learning_rate']].sort_values('seed', key=lambda seed: seed != SEED)
        row = dict(each=[f'{score:.2f}' for score in seeds['top1']], latency=latency[model])
        row['device'] = devices[model, best['learning_rate']]
        if len(seeds) > 1:
            scores = to_scores(seeds)
            row['mean'] = f'{scores.mean:.2f}{plus_minus(mean_margin(scores, [scores]))}'
        if others:
            row['other'] = others[0]['top1']
        rows.append(best | row)
    return pd.DataFrame(rows).sort_values('top1', ascending=False)


def show_field() -> str:
    """A row for each model after two epochs, best first: scores on the held-out images."""
    forms = {
        'model': '{model}',
        'learning rate': '{learning_rate:g}',
        'top-1 (%), each seed': '{each}',
        'mean': '{mean}',
        'other rate': '{other:.2f}',
        'on': '{device}',
        **tell_costs(FIELD_LATENCIES[0]),
    }
    finals = read_gpu('seeds', GPUS[1])
    told = ', '.join(f'{model} {score}' for model, score in zip(finals['model'], finals['told']))
    return f'{table(rank_field(), forms)}\n\nTest images, after six epochs on all training images, one seed: {told}.'


def show_cost() -> str:
    """The hours of all runs of the page, by CPUs and GPUs."""
    tables = [read_table(RECORDS / f'{name}.json') for name in TABLES]
    cores = sum(run['seconds'] for records in tables for run in records) / 3600
    gpus = pd.concat([pd.DataFrame(read_json(path, 'measured on a GPU', keys=['rows'])['rows']) for path in GPUS])
    hours = gpus['seconds'].sum() / 3600
    return f'All runs of this page: {cores:.1f} core-hours on CPUs, {hours:.1f} hours on GPUs, several at a time.'


def show_origin(path: Path = GPU) -> str:
    """Return the device and versions of what a GPU measured."""
    found = read_json(path, 'measured on a GPU', keys=['device', 'cpu', 'date', 'versions'])
    return f'{found["date"]}, {found["device"]} with {found["cpu"]}, torch {found["versions"]["torch"]}.'


PLACES = {
    'benchmark cost': show_cost,
    'benchmark runs': show_runs,
    'benchmark both': show_both,
    'benchmark numbers': show_numbers,
    'benchmark GPU': lambda width: f'{show_gpu(width)}\n\n{show_origin()}',
    'benchmark rates': show_gpu_rates,
    'benchmark field': lambda: '\n\n'.join(
        [
            show_field(),
            *map(show_origin, GPUS),
            *(describe_source(read_table(path), path.stem) for path in (FIELD, TWO_EPOCHS)),
        ]
    ),
}
