"""What ``tools/benchmark.py --out`` measured, as one data frame."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from docs.reports.markdown import short_name

from .settings import Measurement, describe_size, read_record

FIRST = ['model', 'short', 'median', 'rate', 'peak_memory', 'bound_seconds', 'share']


def read_speeds(paths: Iterable[Path]) -> pd.DataFrame:
    """A row a measurement: its fields, its file, and ratios to the first model of its file, setting and kind.

    ``faster`` and ``fewer`` are that model's seconds and FLOPs over a row's, ``delivered`` the one over the other,
    ``memory`` a row's peak over that model's; ``first_short`` and so on are its own values.
    """
    rows = []
    for path in paths:
        record = read_record(path)
        rows += [_describe(each) | dict(path=path, record=record) for each in record.results]
    frame = pd.DataFrame(rows, dtype=object)
    frame = frame.astype(dict.fromkeys(('flops', 'peak_memory', 'bound_seconds', 'median', 'spread'), float))
    frame['file'] = [path.stem.removesuffix('_cpu') for path in frame['path']]
    frame['share'] = frame['bound_seconds'] / frame['median']
    frame['rate'] = frame['batch_size'] / frame['median']
    groups = frame.groupby(['path', 'kind', 'setting'], sort=False)
    frame = frame.join(groups[FIRST].transform('first').add_prefix('first_'))
    frame['faster'] = frame['first_median'] / frame['median']
    frame['fewer'] = groups['flops'].transform('first') / frame['flops']
    frame['delivered'] = frame['faster'] / frame['fewer']
    frame['memory'] = frame['peak_memory'] / frame['first_peak_memory']
    return frame


def _describe(each: Measurement) -> dict[str, Any]:
    short = short_name(each.model)
    return asdict(each) | dict(
        measurement=each,
        setting=each.setting,
        short=short,
        name=f'{short} neck' if each.part == 'neck' else short,
        size=describe_size(each.size),
        median=each.median,
        spread=each.spread,
    )


def read_pairs(frame: pd.DataFrame) -> pd.DataFrame:
    """The second model of each file and kind in its file's first setting: ours, in the place of the first."""
    first = frame[frame['setting'] == frame.groupby('path', sort=False)['setting'].transform('first')]
    return first.groupby(['path', 'kind'], sort=False).nth(1)


def by_kind(frame: pd.DataFrame, *keys: str) -> list[dict[str, dict]]:
    """A row for each file, or for each of other ``keys``: its measurements by ``inference`` and ``training``."""
    groups = frame.groupby([*(keys or ['path'])], sort=False)
    return [{row['kind']: row for row in rows.to_dict('records')} for _, rows in groups]


def first_beside_others(frame: pd.DataFrame) -> pd.DataFrame:
    """All but each file's first model: ``lead`` is that one's speed over theirs, ``needs`` its memory over theirs."""
    others = frame[frame['model'] != frame['first_model']]
    return others.assign(lead=1 / others['faster'], needs=1 / others['memory'])
