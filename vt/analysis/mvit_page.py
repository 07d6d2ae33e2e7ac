"""The tables of multiscale vision transformers: what each model and each ablation costs, beside what was published."""

import json
from functools import cache
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope
from mmpretrain.registry import MODELS

from vt.apis.model_zoo import find_config
from vt.checkpoints.files import read_json

from .complexity.counting import Complexity, count_complexity
from .speed.measurement import KINDS, describe_size, read_record
from .tables import insert, to_markdown

PUBLISHED = Path(__file__).with_name('mvit_models.json')
# As tools/benchmark_mvit.sh writes them.
SPEEDS = 'docs/benchmarks/mvit'
DECODERS = 'docs/benchmarks/video_{}_cpu.json'


@cache
def count_config(path: Path, frames: int | None, size: int) -> Complexity:
    """The cost of a config's backbone and head on one image or clip; nothing is computed."""
    model = Config.fromfile(path).model
    with DefaultScope.overwrite_default_scope('mmpretrain'), torch.device('meta'):
        backbone, head = (MODELS.build(model[part]) for part in ('backbone', 'head'))
        sides = [size, size] if frames is None else [frames, size, size]
        cost = count_complexity(backbone, torch.empty(1, 3, *sides))
    parameters = sum(parameter.numel() for parameter in head.parameters())
    weights = sum(parameter.numel() for parameter in head.parameters() if parameter.ndim == 2)
    return Complexity(cost.flops + weights, cost.parameters + parameters)


def describe(root: Path, models: dict[str, dict], names: tuple[str, ...]) -> list[dict[str, str]]:
    """A row a model: its entries ``names``, the last with a link to its config, its cost and what was published."""
    rows = []
    for name, model in models.items():
        path = find_config(Path(name).name).relative_to(root).as_posix()
        cost = count_config(root / path, model.get('frames'), model.get('size', 224))
        parameters, flops, top1 = ('' if value is None else str(value) for value in model['published'])
        *first, linked = (model[key] for key in names)
        rows.append(
            dict(zip(names, [*first, f'[{linked}](../{path})']))
            | {
                'M parameters': f'{cost.parameters / 1e6:.2f}',
                'published': parameters,
                'G FLOPs': f'{cost.flops / 1e9:.2f}',
                'published ': flops,
                'top-1, published': top1,
            }
        )
    return rows


def describe_all(root: Path) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The rows of all models, and of all ablations."""
    published = json.loads(PUBLISHED.read_text())
    return describe(root, published['models'], ('title',)), describe(root, published['ablations'], ('table', 'change'))


def describe_speeds(root: Path) -> list[dict[str, str]]:
    """A row for each model that was measured beside one of ours: how many times faster and smaller ours is."""
    rows = []
    for path in sorted((root / SPEEDS).glob('*.json')):
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


def describe_decoders(root: Path) -> list[dict[str, str]]:
    """A row a decoder: clips a second, the loading alone and with what a training does to them."""
    rows = {}
    for column in ('decoding', 'training'):
        path = root / DECODERS.format(column)
        for entry in read_json(path, 'measure it again', keys=['results'])['results'] if path.exists() else []:
            row = rows.setdefault(entry['decoder'], dict(decoder=entry['decoder']))
            workers = 'a worker' if entry['workers'] == 1 else f'{entry["workers"]} workers'
            row[f'{column}, {workers}'] = f'{entry["clips_per_second"]:.3g}'
    return list(rows.values())


def write_page(page: Path, root: Path) -> None:
    """Write the page's tables."""
    models, ablations = describe_all(root)
    insert(page, 'mvit models', to_markdown(models))
    insert(page, 'mvit ablations', to_markdown(ablations))
    if speeds := describe_speeds(root):
        insert(page, 'mvit speed', to_markdown(speeds))
    if decoders := describe_decoders(root):
        insert(page, 'decoders', to_markdown(decoders))
