"""The page on the survey's models: what each chooses and costs, and what validates it."""

from pathlib import Path

import numpy as np
from mmengine.config import Config

from vt.apis import find_config, list_models
from vt.apis.published import PUBLISHED
from vt.checkpoints.files import read_json

from .claims import describe_claims
from .complexity import COST, count_config
from .components import describe_choices, describe_survey_models, read_survey_models
from .markdown import BENCHMARKS, ROOT, Rows, cells, config_path, table
from .metafiles import read_models
from .recipes import describe_recipes, describe_sources, find_authors
from .speeds import first_beside_others, read_speeds

CONFIG = '{}_16xb64-300e_in1k'
DENSE = '_4xb4-160k_ade20k-512x512'
LIBRARIES = dict(blas='BLAS', onednn='oneDNN')
SPEEDS = BENCHMARKS / 'survey'  # as tools/benchmark/survey.sh measures them, NAME_cpu.json
DIFFERENCES = SPEEDS / 'references.json'  # as python -m docs.reports references measures them
COSTS = {
    'model': '[{title}](../{folder}/README.md)',
    **COST,
    'top-1, published': '[{published[2]}](../{authors})',
    'validated by': '{validated}',
    "compared with the authors' code": '{beside}',
    'note': '{why}',
}
SEGMENTORS = {
    'config': '[`{name}`](../{path})',
    'G FLOPs': '{cost.flops:G.2f}',
    "neck's G FLOPs": '{neck.flops:G.2f}',
    'M parameters': '{cost.parameters:M.2f}',
}


def measure_references() -> dict[str, float]:
    """How far each model that timm has is from timm's, see :mod:`docs.reports.references`."""
    from .references import measure_difference  # timm is no part of an installation

    return {
        name: measure_difference(
            Config.fromfile(ROOT / config_path(CONFIG.format(name))),
            entry['reference'],
            entry.get('image_size', 224),
        )
        for name, entry in read_survey_models().items()
        if 'reference' in entry
    }


def describe_costs() -> Rows:
    """A row a model: parameters and FLOPs beside the published ones, and what validates it."""
    differences = read_json(DIFFERENCES, 'measure it: python -m docs.reports references', keys=['differences'])
    rows = []
    for name, entry in read_survey_models().items():
        path = config_path(CONFIG.format(name))
        validated = f'[published equations](../tests/{entry.get("equations", "published_survey")}.py), 1e-09'
        if 'reference' in entry:
            difference = differences['differences'][name]
            validated = f"timm's `{entry['reference']}`, {f'{difference:.0e}' if difference else 'the same'}"
        more = dict(folder=Path(path).parent.as_posix(), authors=find_authors(name), validated=validated)
        more['cost'] = read_models()[path]['Metadata']
        if 'compared_with' in entry:
            repository, commit = entry['compared_with'].split('@')
            link = f'[{repository}](https://github.com/{repository}/tree/{commit}) {commit}'
            more['beside'] = ', '.join([link, *([entry['compared']] if 'compared' in entry else [])])
        rows.append(dict(why='') | entry | more)
    return cells(rows, COSTS, missing='-')


def describe_segmentors() -> Rows:
    """A row a model with a neck for dense prediction: FLOPs and parameters."""
    names = [name.removesuffix(DENSE) for name in list_models() if name.endswith(DENSE)]
    rows = []
    for name in sorted(name for name in names if name.split('_')[0] in read_survey_models()):
        path = config_path(name + DENSE)
        cost, neck = count_config(ROOT / path, (512, 512))
        rows.append(dict(name=name, path=path, cost=cost, neck=neck))
    return cells(rows, SEGMENTORS)


def describe_published() -> Rows:
    """Which published weights each config takes by a library's name."""
    found = {name: find_config(name).relative_to(ROOT).as_posix() for name in PUBLISHED}
    return [
        {
            'config': f'[{name}](../../{found[name]})',
            '`timm`, `huggingface`': timm and f'`{timm}`',
            '`torchvision`': torchvision and f'`{torchvision}`',
        }
        for name, (timm, torchvision) in PUBLISHED.items()
    ]


def describe_speeds(folder: Path = SPEEDS) -> str:
    """A row a model that was measured beside its references: how many times faster and smaller, and the machines."""
    paths = {name: folder / f'{name}_cpu.json' for name in read_survey_models()}
    speeds = read_speeds([path for path in paths.values() if path.exists()])
    machines = {f'{record.device}, torch {record.versions["torch"]}' for record in speeds['record']}
    others = first_beside_others(speeds)
    others['key'] = others['model'].str.split(':').str[0] + '_' + others['kind']
    rows = [
        rows.set_index('key').to_dict('index') | dict(title=read_survey_models()[name]['title'])
        for name, rows in others.groupby('file', sort=False)
    ]
    forms = {'model': '{title}'}
    for kind in ('inference', 'training'):
        forms[f'{kind} (ms)'] = f'{{timm_{kind}[first_median]:m.0f}}'
        for library in ('timm', 'mmpretrain'):
            forms[f'faster than {library}, {kind}'] = f'{{{library}_{kind}[lead]:.2f}}x'
            forms[f'memory of {library}, {kind}'] = f'{{{library}_{kind}[needs]:.2f}}x'
    return f'{table(cells(rows, forms, missing="-"))}\n\nMeasured on {" and ".join(sorted(machines))}.'


def describe_linear_layers(machine: str = '') -> str:
    """A row a model and kind: other libraries' times over ours, whose linear layers are computed by BLAS or oneDNN."""
    speeds = read_speeds(sorted(BENCHMARKS.joinpath(machine, 'linear_layers').glob('*.json')))
    machines = {f'{record.device}, torch {record.versions["torch"]}' for record in speeds['record']}
    rows = []
    for (file, kind), found in speeds.groupby(['file', 'kind'], sort=False):
        row = dict(title=read_survey_models()[file]['title'], kind=kind)
        for library, times in found.groupby('token_products'):
            own, *others = times.to_dict('records')
            row[f'{library}_spread'] = own['spread']
            row |= {f'{library}_{other["model"].split(":")[0]}': other['median'] / own['median'] for other in others}
        rows.append(row)
    forms = {'model': '{title}', 'batch of 8': '{kind}'}
    for library, name in LIBRARIES.items():
        forms |= {f'{name}, faster than {peer}': f'{{{library}_{peer}:.2f}}x' for peer in ('timm', 'torchvision')}
        forms[f'{name}, spread (%)'] = f'{{{library}_spread:p.1f}}'
    return f'{table(cells(rows, forms, missing="-"))}\n\nMeasured on {" and ".join(sorted(machines))}.'


def describe_bfloat16(machine: str = '') -> str:
    """A row a model and kind of ``tools/benchmark/bfloat16.py``: the speed of bfloat16 over that of float32."""
    folder = BENCHMARKS / machine / 'bfloat16'
    rows, machines = [], set()
    for path in sorted(folder.glob('*.json')):
        record = read_json(path, f'write it first: tools/benchmark/bfloat16.py NAME --out {folder}')
        machines.add(f'{record["device"]}, torch {record["versions"]["torch"]}')
        name = record['name'].split('_')[0]
        for found in record['rows']:
            low, half, high = np.percentile(
                [found[way] for way in ('blas', 'onednn', 'bfloat16')], (25, 50, 75), axis=1
            )
            row = dict(title=read_survey_models().get(name, dict(title=name))['title'], kind=found['kind'])
            row |= dict(ms=half[2], blas=half[0] / half[2], onednn=half[1] / half[2], spread=max((high - low) / half))
            rows.append(row)
    forms = {'model': '{title}', 'batch of 8': '{kind}', 'bfloat16 (ms)': '{ms:m.0f}'}
    forms |= {f'faster than float32 by {name}': f'{{{key}:.2f}}x' for key, name in LIBRARIES.items()}
    return f'{table(cells(rows, forms | {"spread (%)": "{spread:p.1f}"}))}\n\nMeasured on {" and ".join(machines)}.'


PLACES = {
    'survey speed': describe_speeds,
    'survey linear layers': describe_linear_layers,
    'survey bfloat16': describe_bfloat16,
    'survey choices': lambda: table(describe_choices(), dense=True),
    'survey components': lambda: table(describe_survey_models(), dense=True),
    'survey costs': lambda: table(describe_costs()),
    'survey recipes': lambda: table(describe_recipes(), dense=True),
    'survey sources': lambda: table(describe_sources(), dense=True),
    'survey segmentors': lambda: table(describe_segmentors()),
    'published weights': lambda: table(describe_published()),
    'survey claims': lambda: table(describe_claims(), dense=True),
}
