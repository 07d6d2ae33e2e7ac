"""What ``projects/speed/gpu_report.py`` wrote, as data frames for the tables of the page on performance."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from docs.reports.markdown import short_name

from .gpu_report import Row, read_lines

SCRIPT = 'python -m projects.speed.gpu_report projects/speed/measured/CARD'


def read(folder: Path) -> Row:
    """Return what is known about a report: its device, ``tables`` of its parts, and ``missing``, lines of text."""
    lines = read_lines(folder)
    about = dict(device='a GPU', versions={}, smi='', tf32=False, dry=False, limit=0, seconds=0)
    for line in lines:
        about |= line if line['part'] in ('environment', 'report') else {}
    measured = [line for line in lines if 'error' not in line and 'skipped' not in line]
    names = dict.fromkeys(line['part'] for line in measured if line['part'] not in ('environment', 'report'))
    tables = {name: _frame([line for line in measured if line['part'] == name]) for name in names}
    return about | dict(tables=tables, missing=[*_missing(lines)])


def _frame(rows: list[Row]) -> pd.DataFrame:
    """Return the rows of a part with microseconds also as seconds, and models compared with their baseline."""
    frame = pd.json_normalize(rows, sep='_').replace(['', 'off'], float('nan'))
    for name in [name for name in frame if name.endswith('_us')]:
        frame[name.removesuffix('_us')] = frame[name] / 1e6
    if 'model' not in frame:
        return frame
    frame['short'] = frame['model'].map(lambda model: short_name(Path(model).stem))
    baseline = frame['model'].str.contains('/baselines/|^timm:')
    if 'change' in frame:
        baseline &= frame['change'] != 'bf16 upsampling'
    settings = frame.reindex(columns=['batch', 'kind', 'compile']).map(str)
    groups = (baseline | (settings != settings.shift()).any(axis=1)).cumsum()  # a baseline is the first of its group
    for name in {'eager', 'graph'} & {*frame}:
        frame[f'faster_{name}'] = frame[name].where(baseline).groupby(groups).transform('first') / frame[name]
    if 'kernels_busy' in frame:  # no ratio if Python takes longer than the GPU, in either
        waits = frame['launch'] > frame['kernels_busy']
        frame.loc[waits | waits.groupby(groups).transform('first'), 'faster_eager'] = float('nan')
    return frame


def _missing(lines: list[Row]) -> Iterator[str]:
    for line in lines:
        if reason := line.get('error') or line.get('skipped'):
            known = [
                str(value)
                for value in line.values()
                if isinstance(value, (str, int, list)) and value not in (reason, '', 'off')
            ]
            yield f'{", ".join(known)}: {reason}'
