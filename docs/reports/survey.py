"""The page on the survey's systems: what each chooses and costs, and what validates it."""

from itertools import zip_longest
from pathlib import Path

from mmengine.config import Config

from vt.analysis.speed.measurement import Measurement, read_record
from vt.apis import list_models
from vt.checkpoints.files import read_json

from .claims import describe_claims
from .complexity import count_config, describe_cost
from .components import describe_choices, describe_systems, read_systems
from .markdown import BENCHMARKS, ROOT, Rows, config_path, insert, table

CONFIG = '{}_16xb64-300e_in1k'
DENSE = '{}_4xb4-160k_ade20k-512x512'
EQUATIONS = '[literal equations](../tests/{}.py), 1e-09'
SPEEDS = BENCHMARKS / 'survey'  # as tools/benchmark/survey.sh measures them, NAME_cpu.json
DIFFERENCES = SPEEDS / 'twins.json'  # as python -m docs.reports twins measures them
TWINS = dict(timm='twin', mmpretrain='mmpretrain')  # libraries, and a system's key for its name there


def render(page: str) -> str:
    """The page with its tables."""
    page = insert(page, 'survey speed', f'{table(describe_speeds(SPEEDS))}\n\nMeasured on {describe_machines(SPEEDS)}.')
    page = insert(page, 'survey choices', table(describe_choices(), dense=True))
    page = insert(page, 'survey components', table(describe_systems(), dense=True))
    page = insert(page, 'survey costs', table(describe_costs()))
    page = insert(page, 'survey segmentors', table(describe_segmentors()))
    return insert(page, 'survey claims', table(describe_claims(), dense=True))


def measure_twins() -> dict[str, float]:
    """How far each system that timm has is from timm's, see :mod:`docs.reports.twins`."""
    from .twins import measure_difference  # timm is no part of an installation

    return {
        name: measure_difference(
            Config.fromfile(ROOT / config_path(CONFIG.format(name))), system['twin'], system.get('image_size', 224)
        )
        for name, system in read_systems().items()
        if 'twin' in system
    }


def describe_costs() -> Rows:
    """A row a system: parameters and FLOPs beside the published ones, and what validates it."""
    differences = read_json(DIFFERENCES, 'measure it: python -m docs.reports twins', keys=['differences'])[
        'differences'
    ]
    rows = []
    for name, system in read_systems().items():
        path = config_path(CONFIG.format(name))
        validation = {'validated by': _validation(system, differences.get(name)), 'note': system.get('why', '')}
        rows.append(
            {'system': f'[{system["title"]}](../{Path(path).parent.as_posix()}/README.md)'}
            | describe_cost(path, system['published'], '-')
            | validation
        )
    return rows


def _validation(system: dict, difference: float | None) -> str:
    """What a system was compared with, and how near it came."""
    if 'twin' in system:
        words = '' if difference is None else f', {difference:.0e}' if difference else ', the same'
        return f"timm's `{system['twin']}`{words}"
    return EQUATIONS.format(system.get('equations', 'literal_survey'))


def describe_segmentors() -> Rows:
    """A row a system with a neck for dense prediction: FLOPs and parameters."""
    rows = []
    names = sorted(
        name for name in list_models() if name.endswith(DENSE.format('')) and name.split('_')[0] in read_systems()
    )
    for name in names:
        path = config_path(name)
        cost, neck = count_config(ROOT / path, (512, 512))
        rows.append(
            {
                'config': f'[`{name.removesuffix(DENSE.format(""))}`](../{path})',
                'G FLOPs': f'{cost.flops / 1e9:.2f}',
                "the neck's": f'{neck.flops / 1e9:.2f}',
                'M parameters': f'{cost.parameters / 1e6:.2f}',
            }
        )
    return rows


def describe_speeds(folder: Path) -> Rows:
    """A row a system that was measured beside its public twins: milliseconds, and how many times faster and smaller."""
    rows = []
    for name, system in read_systems().items():
        path = folder / f'{name}_cpu.json'
        if path.exists():
            own, *twins = CONFIG.format(name), *_twins(system)
            rows.append({'system': system['title']} | _speed_cells(read_record(path).results, own, twins))
    return rows


def describe_machines(folder: Path) -> str:
    """Where the speeds were measured."""
    records = [read_record(path) for path in sorted(folder.glob('*_cpu.json'))]
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
