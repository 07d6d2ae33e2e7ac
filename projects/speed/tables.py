"""The tables beside the page on performance: other libraries, exported models and kernels."""

from pathlib import Path

import numpy as np

from docs.reports.components import read_survey_models
from docs.reports.markdown import Rows, cells, table
from vt.files import read_json

from .performance import MEASURED
from .speeds import by_kind, first_beside_others, read_speeds

LIBRARIES = dict(blas='BLAS', onednn='oneDNN')
SURVEY = MEASURED / 'survey'  # as survey.sh measures them, NAME_cpu.json
MVIT = {
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
EXPORTS = {
    'model': '{config}',
    'size': '{shape}',
    'format': '{format}',
    'largest difference': '{difference:.1e}',
    'score': '{scored}',
    'model itself': '{own_score}',
    'ms': '{seconds:m.1f}',
    'model itself (ms)': '{eager:m.1f}',
    'faster': '{faster:.2f}x',
    'than ONNX': '{than_onnx:.2f}x',
}


def describe_speeds(folder: Path = SURVEY) -> str:
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
    speeds = read_speeds(sorted(MEASURED.joinpath(machine, 'linear_layers').glob('*.json')))
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
    """A row a model and kind of ``projects.speed.bfloat16``: the speed of bfloat16 over that of float32."""
    folder = MEASURED / machine / 'bfloat16'
    rows, machines = [], set()
    for path in sorted(folder.glob('*.json')):
        record = read_json(path, f'write it first: projects.speed.bfloat16 NAME --out {folder}')
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


def describe_mvit(folder: Path) -> Rows:
    """A row for each model that was measured beside one of ours: how many times faster and smaller ours is."""
    speeds = read_speeds(sorted(folder.glob('*.json')))
    return cells(by_kind(first_beside_others(speeds), 'path', 'model'), MVIT)


def show_exports() -> str:
    """The table of exported models, of what ``projects.speed.exported --out`` wrote."""
    rows, origins = [], set()
    for path in sorted((MEASURED / 'export').glob('*.json')):
        record = read_json(path, 'measure it: bash projects/speed/export.sh', keys=['results', 'config', 'size'])
        shape = f'{record["size"].partition(" x ")[2]}, {"open" if record["open_size"] else "fixed"}'
        (onnx,) = (row['seconds'] for row in record['results'] if row['format'] == 'onnx')
        for row in record['results']:
            scores = dict(scored='', own_score='')
            if 'score' in row:
                metric = row['metric'].replace('accuracy/top1', 'top-1')
                scores = dict(scored=f'{metric} {row["score"]:.2f}', own_score=f'{row["model_score"]:.2f}')
            ratios = dict(faster=row['eager'] / row['seconds'], than_onnx=onnx / row['seconds'])
            rows.append(record | row | scores | ratios | dict(shape=shape))
        origins.add(f'{record["device"]}, torch {record["versions"]["torch"]}')
    return f'{table(rows, EXPORTS)}\n\n{"; ".join(sorted(origins))}; the machine did other work beside it.'


def show_kernels() -> str:
    """The table of kernels, of what ``projects.speed.kernels --out`` wrote.

    For each architecture it has registers, spilled bytes and kB of shared memory.
    """
    rows: dict[tuple, dict[str, str]] = {}
    for result in read_json(MEASURED / 'kernels.json', 'measure it')['results']:
        what = {name: str(result[name]) for name in ('kernel', 'C', 'L', 'block')}
        taken = f'{result["registers"]} / {result["spilled_bytes"]} / {result["shared_bytes"] / 1024:.0f}'
        rows.setdefault(tuple(what.values()), what)[f'sm_{result["sm"]}'] = taken
    return table([*rows.values()])


PLACES = {
    'survey speed': describe_speeds,
    'survey linear layers': describe_linear_layers,
    'survey bfloat16': describe_bfloat16,
    'mvit speed': lambda: table(describe_mvit(MEASURED / 'mvit')),
    'exported models': show_exports,
    'kernels': show_kernels,
}
