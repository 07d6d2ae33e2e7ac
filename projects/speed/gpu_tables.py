"""What ``projects/speed/gpu_report.py`` wrote, as data frames for the tables of the page on performance."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from docs.reports.markdown import short_name
from vt.analysis.scores import pick_score
from vt.files import read_json

SCRIPT = 'python -m projects.speed.gpu_report projects/speed/measured/CARD'
# What tells one row of a part from another.
IDENTITY = ('model', 'operation', 'kind', 'batch', 'path', 'dtype', 'n_p_c_l', 'n_c_h_w_l', 'compile', 'run')
# By the page's tables: the part of each, and what its rows with numbers have.
TABLES = dict(
    ceilings=('ceilings', 'copy'),
    kernels=('kernels', 'repeats'),
    necks=('necks', 'kernels_launches'),
    resnets=('resnets', 'kernels_launches'),
    paths=('paths', 'launch_us'),
    trainings=('trainings', 'score'),
    graphs=('compiled', 'graphs'),
    compiled=('compiled', 'kernels_launches'),
)


def read(path: Path) -> dict[str, Any]:
    """What a file says: the device, a table of each part, None for one without numbers, and lines of what is missing.

    Raises:
        UserError: it is damaged, or something else.
    """
    measured = read_json(path, f'measure it again: {SCRIPT}', keys=('parts', 'seconds', 'limit', 'dry'))
    frames = {name: _frame(part['rows']) for name, part in measured['parts'].items() if part['rows']}
    tables = {
        name: rows
        for name, (part, number) in TABLES.items()
        if number in (frame := frames.get(part, pd.DataFrame())) and len(rows := frame.dropna(subset=number))
    }
    if 'paths' in tables and 'ceilings' in tables and 'bytes_per_second' in tables['paths']:
        tables['paths']['of_copy'] = tables['paths']['bytes_per_second'] / tables['ceilings']['copy'].iloc[0]
    about = dict(device='a GPU', versions={}, smi='', tf32=False)
    for row in measured['parts'].get('environment', {}).get('rows', ()):
        about |= row
    missing = [line for name, part in measured['parts'].items() for line in _missing(name, part)]
    return measured | dict(about=about, missing=missing) | {name: tables.get(name) for name in TABLES}


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Rows of a part, microseconds in seconds too, models beside the baseline of their batch and kind."""
    frame = pd.json_normalize([_describe_training(row) if 'metrics' in row else row for row in rows], sep='_')
    for name in [name for name in frame if name.endswith('_us')]:
        frame[name.removesuffix('_us')] = frame[name] / 1e6
    if 'repeats' in frame:
        frame['norm_largest'] = frame.filter(regex='^norm_').max(axis=1)
        frame['worst_largest'] = frame.filter(regex='^worst_').max(axis=1)
    if 'model' in frame and 'kind' in frame:
        frame['short'] = frame['model'].map(lambda model: short_name(Path(model).stem), na_action='ignore')
        identity = frame.reindex(columns=['batch', 'kind', 'compile']).map(str)
        groups = (identity != identity.shift()).any(axis=1).cumsum()  # rows that follow on each other
        for name in {'eager', 'graph'} & {*frame}:
            theirs = frame[name].where(frame['model'].str.contains('/baselines/'))
            frame[f'faster_{name}'] = theirs.groupby(groups).transform('first') / frame[name]
        if 'kernels_busy' in frame:  # no ratio where Python takes longer than the GPU, in either
            waits = frame['launch'] > frame['kernels_busy']
            frame.loc[waits | waits.groupby(groups).transform('first'), 'faster_eager'] = float('nan')
    return frame


def _describe_training(row: dict[str, Any]) -> dict[str, Any]:
    rate = row['iterations'] * row['batch_size'] / row['seconds']
    waiting = row['data_seconds'] / row['seconds']
    return row | dict(config=Path(row['config']).stem, score=pick_score(row['metrics']), rate=rate, waiting=waiting)


def _missing(name: str, part: dict[str, Any]) -> Iterator[str]:
    """A line for each error, and one for what no time was left for."""
    for row in (part, *part['rows']):
        if 'error' in row:
            yield f'{", ".join([name, *(str(row[key]) for key in IDENTITY if key in row)])}: {row["error"]}'
    if 'skipped' in part:
        yield f'{name}: {part["skipped"]}'
    if skipped := sum('skipped' in row for row in part['rows']):
        yield f'{name}: no time was left for {skipped} rows'
