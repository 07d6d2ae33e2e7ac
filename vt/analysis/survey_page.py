"""The page on the survey's systems: what each chooses and costs, and what validates it."""

from itertools import zip_longest
from pathlib import Path

import torch
from mmengine.config import Config
from mmpretrain.registry import MODELS as CLASSIFIERS

from vt.apis.model_zoo import find_config
from vt.checkpoints.files import read_json

from .complexity.complexity_tables import count_config
from .complexity.counting import count_complexity
from .speed.measurement import Measurement, read_record
from .survey_claims import describe_claims
from .survey_components import describe_choices, describe_systems, read_systems
from .tables import insert, to_dense_markdown, to_markdown

CONFIG = '{}_16xb64-300e_in1k'
DENSE = '{}_4xb4-160k_ade20k-512x512'
EQUATIONS = '[literal equations](../tests/{}.py), 1e-09'
SPEEDS = 'docs/benchmarks/survey/{}_cpu.json'  # as tools/benchmark_survey.sh writes them
DIFFERENCES = 'docs/benchmarks/survey/twins.json'  # as tools/report.py survey --twins writes them
TWINS = dict(timm='twin', mmpretrain='mmpretrain')  # libraries, and a system's key for its name there


def measure_twins(root: Path) -> dict[str, float]:
    """How far each system that timm has is from timm's, see :mod:`vt.analysis.survey_twins`."""
    from .survey_twins import measure_difference  # timm is no part of an installation

    return {
        name: measure_difference(
            Config.fromfile(find_config(CONFIG.format(name))), system['twin'], system.get('image_size', 224)
        )
        for name, system in read_systems().items()
        if 'twin' in system
    }


def describe_costs(root: Path) -> list[dict[str, str]]:
    """A row a system: parameters and FLOPs beside the published ones, and what validates it."""
    rows = []
    measured, advice = root / DIFFERENCES, 'measure it: tools/report.py survey --twins'
    differences = read_json(measured, advice, keys=['differences'])['differences'] if measured.is_file() else {}
    for name, system in read_systems().items():
        path = find_config(CONFIG.format(name))
        config = Config.fromfile(path)
        config.model.train_cfg = None  # no mixing of images, which is logged
        size = system.get('image_size', 224)
        with torch.device('cpu' if system.get('backbone_of') == 'MMPretrain' else 'meta'):
            model = CLASSIFIERS.build(config.model)
            model.eval()
            cost = count_complexity(model, torch.zeros(1, 3, size, size), mode='tensor')
        parameters, flops, top1 = system['published']
        rows.append(
            {
                'system': f'[{system["title"]}](../{path.relative_to(root).as_posix()})',
                'M parameters': f'{cost.parameters / 1e6:.2f}',
                'published': '-' if parameters is None else f'{parameters}',
                'G FLOPs': f'{cost.flops / 1e9:.2f}',
                'published ': '-' if flops is None else f'{flops}',
                'top-1, published': '-' if top1 is None else f'{top1}',
                'validated by': _validation(system, differences.get(name)),
                'note': system.get('why', ''),
            }
        )
    return rows


def _validation(system: dict, difference: float | None) -> str:
    """What a system was compared with, and how near it came."""
    if 'twin' in system:
        words = '' if difference is None else f', {difference:.0e}' if difference else ', the same'
        return f"timm's `{system['twin']}`{words}"
    return EQUATIONS.format(system.get('equations', 'literal_survey'))


def describe_segmentors(root: Path) -> list[dict[str, str]]:
    """A row a system with a neck for dense prediction: FLOPs and parameters."""
    rows = []
    patterns = [f'*/{name}_{DENSE.format("*")}.py' for name in sorted(read_systems())]
    for path in (path for pattern in patterns for path in sorted((root / 'configs').glob(pattern))):
        cost, neck = count_config(path, (512, 512))
        rows.append(
            {
                'config': f'[`{path.stem.removesuffix(DENSE.format(""))}`](../{path.relative_to(root).as_posix()})',
                'G FLOPs': f'{cost.flops / 1e9:.2f}',
                "the neck's": f'{neck.flops / 1e9:.2f}',
                'M parameters': f'{cost.parameters / 1e6:.2f}',
            }
        )
    return rows


def describe_speeds(root: Path) -> list[dict[str, str]]:
    """A row a system that was measured beside its public twins: milliseconds, and how many times faster and smaller."""
    rows = []
    for name, system in read_systems().items():
        path = root / SPEEDS.format(name)
        if path.exists():
            own, *twins = CONFIG.format(name), *_twins(system)
            rows.append({'system': system['title']} | _speed_cells(read_record(path).results, own, twins))
    return rows


def describe_machines(root: Path) -> str:
    """Where the speeds were measured."""
    records = [read_record(path) for path in sorted(root.glob(SPEEDS.format('*')))]
    return ' and '.join(sorted({f'{record.device}, torch {record.versions["torch"]}' for record in records}))


def _twins(system: dict) -> list[str]:
    return [f'{library}:{system[key]}' for library, key in TWINS.items() if key in system]


def _speed_cells(results: list[Measurement], own: str, twins: list[str]) -> dict[str, str]:
    found = {(entry.kind, entry.model): entry for entry in results}
    cells = {}
    for kind in ('inference', 'training'):
        cells[f'{kind} (ms)'] = f'{1000 * found[kind, own].median:.0f}'
        for twin, library in zip_longest(twins, TWINS):
            ratios = ('-', '-')
            if twin:
                other, ours = found[kind, twin], found[kind, own]
                ratios = f'{other.median / ours.median:.2f}x', f'{ours.peak_memory / other.peak_memory:.2f}x'
            cells[f'faster than {library}, {kind}'], cells[f'memory of {library}, {kind}'] = ratios
    return cells


def write_page(page: Path, root: Path) -> None:
    """Write the page's tables."""
    if speeds := describe_speeds(root):
        insert(page, 'survey speed', f'{to_markdown(speeds)}\n\nMeasured on {describe_machines(root)}.')
    insert(page, 'survey choices', to_dense_markdown(describe_choices(root)))
    insert(page, 'survey components', to_dense_markdown(describe_systems(root)))
    insert(page, 'survey costs', to_markdown(describe_costs(root)))
    insert(page, 'survey segmentors', to_markdown(describe_segmentors(root)))
    write_claims(page, root)


def write_claims(page: Path, root: Path) -> None:
    """Write the page's table of claims."""
    insert(page, 'survey claims', to_dense_markdown(describe_claims(root)))
