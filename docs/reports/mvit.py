"""The tables of multiscale vision transformers: what each model and each ablation costs, beside what was published."""

import json
from pathlib import Path

from vt.analysis.speed.measurement import KINDS, describe_size, read_record
from vt.checkpoints.files import read_json

from .complexity import describe_cost
from .markdown import BENCHMARKS, Rows, config_path, insert, table

PUBLISHED = Path(__file__).with_name('mvit_models.json')
DECODERS = 'video_{}_cpu.json'  # as tools/benchmark/mvit.sh writes them, and those in the folder mvit


def describe(models: dict[str, dict], names: tuple[str, ...]) -> Rows:
    """A row a model: its entries ``names``, the last with a link to its config, its cost and what was published."""
    rows = []
    for name, model in models.items():
        path = config_path(Path(name).name)
        *first, linked = (model[key] for key in names)
        cells = dict(zip(names, [*first, f'[{linked}](../{path})']))
        rows.append(cells | describe_cost(path, model['published']))
    return rows


def describe_all() -> tuple[Rows, Rows]:
    """The rows of all models, and of all ablations."""
    published = json.loads(PUBLISHED.read_text())
    return describe(published['models'], ('title',)), describe(published['ablations'], ('table', 'change'))


def describe_speeds(folder: Path) -> Rows:
    """A row for each model that was measured beside one of ours: how many times faster and smaller ours is."""
    rows = []
    for path in sorted(folder.glob('*.json')):
        results = read_record(path).results
        own, *others = dict.fromkeys(entry.model for entry in results)
        found = {(entry.kind, entry.model): entry for entry in results}
        for other in others:
            row = dict(model=own, beside=other, size=f'{results[0].batch_size} of {describe_size(results[0].size)}')
            for kind in KINDS:
                ours, theirs = found[kind, own], found[kind, other]
                per_second = ours.batch_size / ours.median
                row |= {
                    f'{kind}, a second': f'{per_second:.3g}',
                    f'faster, {kind}': f'{theirs.median / ours.median:.2f}x',
                    f'its memory, {kind}': f'{ours.peak_memory / theirs.peak_memory:.2f}x',
                }
            rows.append(row)
    return rows


def describe_decoders(folder: Path) -> Rows:
    """A row a decoder: clips a second, the loading alone and with what a training does to them."""
    rows = {}
    for column in ('decoding', 'training'):
        path = folder / DECODERS.format(column)
        for entry in read_json(path, 'measure it again', keys=['results'])['results'] if path.exists() else []:
            row = rows.setdefault(entry['decoder'], dict(decoder=entry['decoder']))
            workers = 'a worker' if entry['workers'] == 1 else f'{entry["workers"]} workers'
            row[f'{column}, {workers}'] = f'{entry["clips_per_second"]:.3g}'
    return list(rows.values())


def render(page: str) -> str:
    """The page with its tables."""
    models, ablations = describe_all()
    page = insert(page, 'mvit models', table(models))
    page = insert(page, 'mvit ablations', table(ablations))
    page = insert(page, 'mvit speed', table(describe_speeds(BENCHMARKS / 'mvit')))
    return insert(page, 'decoders', table(describe_decoders(BENCHMARKS)))
