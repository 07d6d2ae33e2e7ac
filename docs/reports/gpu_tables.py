"""What ``tools/gpu_report.py`` wrote, as tables of the page on performance."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from vt.analysis.speed.ceilings import TITLES
from vt.checkpoints.files import read_json
from vt.engine.run_record import pick_score

from .markdown import Rows, milliseconds, short_name

SCRIPT = 'python tools/gpu_report.py docs/benchmarks/CARD'
Found = list[dict[str, Any]]
# What tells one row of a part from another.
IDENTITY = ('model', 'operation', 'kind', 'batch', 'path', 'dtype', 'n_p_c_l', 'n_c_h_w_l', 'compile', 'run')


def read(path: Path) -> dict[str, Any]:
    """What a file says: the device, a table of each part, None for one without numbers, and lines of what is missing.

    Raises:
        UserError: it is damaged, or something else.
    """
    measured = read_json(path, f'measure it again: {SCRIPT}', keys=('parts', 'seconds', 'limit', 'dry'))
    parts = defaultdict(list, {name: part['rows'] for name, part in measured['parts'].items()})
    (about,) = parts['environment'] or [{}]
    about = dict(device='a GPU', versions={}, smi='', tf32=False) | about
    copy = next((row['copy'] for row in parts['ceilings'] if 'copy' in row), None)
    tables = dict(
        ceilings=[_ceilings(row) for row in parts['ceilings'] if 'copy' in row],
        kernels=[_kernel(row) for row in parts['kernels'] if 'repeats' in row],
        necks=_models(parts['necks']),
        resnets=_models(parts['resnets']),
        paths=[_path(row, copy) for row in parts['paths'] if 'launch_us' in row],
        trainings=[{'training': row['run']} | describe_training(row) for row in parts['trainings'] if 'metrics' in row],
        graphs=[_graphs(row) for row in parts['compiled'] if 'graphs' in row],
        compiled=_models(parts['compiled']),
    )
    missing = [line for name, part in measured['parts'].items() for line in _missing(name, part)]
    return dict(measured, about=about, missing=missing) | {name: rows or None for name, rows in tables.items()}


def _missing(name: str, part: dict[str, Any]) -> Iterator[str]:
    """A line for each error, and one for what no time was left for."""
    for row in (part, *part['rows']):
        if 'error' in row:
            yield f'{", ".join([name, *(str(row[key]) for key in IDENTITY if key in row)])}: {row["error"]}'
    if 'skipped' in part:
        yield f'{name}: {part["skipped"]}'
    if skipped := sum('skipped' in row for row in part['rows']):
        yield f'{name}: no time was left for {skipped} rows'


def _ceilings(row: dict[str, Any]) -> dict[str, str]:
    return {'precision': row['dtype']} | {title: f'{row[name] / 1e9:,.0f}' for name, title in TITLES.items()}


def _kernel(row: dict[str, Any]) -> dict[str, str]:
    return {
        'operation': row['operation'],
        'path': row['path'],
        'precision': row['dtype'],
        'N, P, C, L': ', '.join(map(str, row['n_p_c_l'])),
        'error of the value': f'{row["norm"]["value"]:.1e}',
        'of the worst gradient': f'{max(row["norm"].values()):.1e}',
        'of the worst element': f'{max(row["worst"].values()):.1e}',
        'repeats exactly': 'yes' if row['repeats'] else 'no',
    }


def _models(rows: Found) -> Rows:
    """Each model beside the baseline of its batch and kind."""
    timed = [row for row in rows if 'kernels' in row]
    table = []
    for _, group in groupby(timed, lambda row: (row['batch'], row['kind'], row.get('compile'))):
        models = list(group)
        baseline = next((row for row in models if '/baselines/' in row['model']), {})
        table += [_model(row, baseline) for row in models]
    return table


def _model(row: dict[str, Any], baseline: dict[str, Any]) -> dict[str, str]:
    cells = {'model': short_name(Path(row['model']).stem), 'kind': row['kind'], 'batch': str(row['batch'])}
    if 'compile' in row:
        cells['compiled'] = row['compile']
    cells |= {
        'launch (ms)': milliseconds(row['launch_us'] / 1e6),
        'kernels': str(row['kernels']['launches']),
        'busy (ms)': milliseconds(row['kernels']['busy_us'] / 1e6),
    }
    for name, title in (('eager', 'in a row'), ('graph', 'as a graph')):
        time, theirs = row.get(name), baseline.get(name)
        cells[f'{title} (ms)'] = milliseconds(time['us'] / 1e6) if time else ''
        cells[f'faster, {title}'] = f'{theirs["us"] / time["us"]:.2f}x' if time and theirs else ''
    return cells


def _path(row: dict[str, Any], copy: float | None) -> dict[str, str]:
    rate = row.get('bytes_per_second')
    return {
        'operation': row['operation'],
        'kind': row['kind'],
        'N, C, H, W, L': ', '.join(map(str, row['n_c_h_w_l'])),
        'path': row['path'],
        'launch (us)': f'{row["launch_us"]:.0f}',
        'in a row (us)': f'{row["eager"]["us"]:.0f}',
        'GPU alone (us)': f'{row["gpu"]["us"]:.1f}' if 'gpu' in row else '',
        'GB/s': f'{rate / 1e9:,.0f}' if rate else '',
        "of the copy's": f'{100 * rate / copy:.0f} %' if rate and copy else '',
    }


def describe_training(record: dict[str, Any]) -> dict[str, str]:
    """A finished training by its record: score, time, and what of it was waiting for data."""
    metric, score = pick_score(record['metrics'])
    images = record['iterations'] * record['batch_size']
    return {
        'config': Path(record['config']).stem,
        'length': record['length'],
        'score (%)': f'{score:.2f} {metric}',
        'seconds': f'{record["seconds"]:.1f}',
        'images/s': f'{images / record["seconds"]:.0f}',
        'waiting for data': f'{100 * record["data_seconds"] / record["seconds"]:.0f} %',
    }


def _graphs(row: dict[str, Any]) -> dict[str, str]:
    return {
        'model': short_name(Path(row['model']).stem),
        'kind': row['kind'],
        'graphs': str(row['graphs']),
        'break': row['break'],
    }
