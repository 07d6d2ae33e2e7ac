"""The tables of multiscale vision transformers: what each model and each ablation costs, beside what was published."""

from pathlib import Path

import pandas as pd

from vt.checkpoints.files import read_json

from .complexity import COST
from .markdown import BENCHMARKS, Rows, cells, config_path, table
from .metafiles import read_models
from .speeds import by_kind, first_beside_others, read_speeds

PUBLISHED = Path(__file__).with_name('mvit_models.json')
DECODERS = ('decoding', 'training')  # docs/benchmarks/video_NAME_cpu.json, as tools/benchmark/mvit.sh writes them
SPEEDS = {
    'model': '{inference[first_model]}',
    'compared with': '{inference[model]}',
    'size': '{inference[batch_size]} of {inference[size]}',
    'inference (per second)': '{inference[first_rate]:.3g}',
    'faster, inference': '{inference[lead]:.2f}x',
    'relative memory, inference': '{inference[needs]:.2f}x',
    'training (per second)': '{training[first_rate]:.3g}',
    'faster, training': '{training[lead]:.2f}x',
    'relative memory, training': '{training[needs]:.2f}x',
}


def describe(models: str, columns: dict[str, str]) -> Rows:
    """A row a model of :data:`PUBLISHED`: these columns, its cost and what was published."""
    found = read_json(PUBLISHED, 'restore it')[models]
    paths = {name: config_path(Path(name).name) for name in found}
    rows = [
        model | dict(path=paths[name], cost=read_models()[paths[name]]['Metadata']) for name, model in found.items()
    ]
    return cells(rows, columns | COST)


def describe_speeds(folder: Path) -> Rows:
    """A row for each model that was measured beside one of ours: how many times faster and smaller ours is."""
    speeds = read_speeds(sorted(folder.glob('*.json')))
    return cells(by_kind(first_beside_others(speeds), 'path', 'model'), SPEEDS)


def describe_decoders(folder: Path) -> pd.DataFrame:
    """A row a decoder: clips a second, the loading alone and with what a training does to them."""
    paths = {name: folder / f'video_{name}_cpu.json' for name in DECODERS}
    results = {name: read_json(path, 'measure it again', keys=['results'])['results'] for name, path in paths.items()}
    found = pd.concat(map(pd.DataFrame, results.values()), keys=results, names=['what']).reset_index('what')
    workers = found['workers'].map(lambda number: '1 worker' if number == 1 else f'{number} workers')
    found['column'] = found['what'] + ', ' + workers
    pivot = found.pivot_table('clips_per_second', 'decoder', 'column', sort=False)
    return pivot.map('{:.3g}'.format).rename_axis(columns=None).reset_index()


MODELS = {'model': '[{title}](../{path})'}
ABLATIONS = {'table': '{table}', 'change': '[{change}](../{path})'}
PLACES = {
    'mvit models': lambda: table(describe('models', MODELS)),
    'mvit ablations': lambda: table(describe('ablations', ABLATIONS)),
    'mvit speed': lambda: table(describe_speeds(BENCHMARKS / 'mvit')),
    'decoders': lambda: table(describe_decoders(BENCHMARKS)),
}
