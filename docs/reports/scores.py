"""Scores of trained runs: one table after each mark of a page, and one line above each config that was trained.

A page names its tables, ``<!-- scores TABLE TABLE: LABEL, LABEL -->``, where each TABLE is a file of records in
``docs/records`` and a LABEL one of their rows; all of them where none is named. The first is what the others are
compared with.
"""

import re
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import ttest_ind

from vt.analysis.scores import CONFIDENCE, Change, Scores, describe, describe_origin, summarize_row

from .markdown import RECORDS, ROOT, count_one, plus_minus, table
from .records import read_recorded

HEADER = re.compile(r'^# (?:Top-1|mIoU) .*\n', re.MULTILINE)
# Options that leave a config what it is: the precision of its steps, who takes them, where its teacher's weights are.
PRECISION = 'optim_wrapper.type'
AS_IT_IS = {PRECISION, 'optim_wrapper.optimizer.fused', 'model.teacher_checkpoint'}
AGAIN = 'python -m docs.reports train'


def read_table(path: Path, again: str = AGAIN) -> list[dict]:
    """The records of a table, a run each, with the ``label`` of its row.

    Raises:
        MissingFileError: there is none.
    """
    return read_recorded(path, f'train it: {again} {path.stem}')


def by_label(records: Sequence[dict]) -> dict[str, Scores]:
    """Scores of the rows of a table."""
    return {label: summarize_row(records, label) for label in dict.fromkeys(run['label'] for run in records)}


def compare_two(scores: Scores, reference: Scores) -> Change:
    """The difference of two means, with Welch's interval: the two may spread differently, no other counts."""
    points = scores.mean - reference.mean
    if min(len(scores.scores), len(reference.scores)) < 2:
        return Change(points, float('nan'))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', RuntimeWarning)  # of scores that are all equal
        interval = ttest_ind(scores.scores, reference.scores, equal_var=False).confidence_interval(CONFIDENCE)
    return Change(points, (interval.high - interval.low) / 2)


def tell_change(change: Change) -> str:
    """A difference with its interval; without one where there is none, as of one seed."""
    return f'{change.points:+.2f}{plus_minus(change.margin)}'


def tell_verdict(change: Change) -> str:
    """Whether a mean is better or worse than another; no clear difference where the interval contains zero."""
    if np.isnan(change.margin) or abs(change.points) <= change.margin:
        return 'no clear difference'
    return 'better' if change.points > 0 else 'worse'


def describe_source(records: Sequence[dict], tables: str, again: str = AGAIN) -> str:
    """Where tables are from, and the command that trains them again."""
    return f'{describe_origin(records)} Reproduce: `{again} {tables}`.'


def show_scores(rows: str, folder: Path = RECORDS, again: str = AGAIN) -> str:
    """A table of scores, of ``TABLE TABLE: LABEL, LABEL`` in a folder of records; a sentence where there are none."""
    tables, _, labels = rows.partition(': ')
    if missing := [name for name in tables.split() if not (folder / f'{name}.json').is_file()]:
        return f'Not trained yet: `{again} {" ".join(missing)}`.'
    records = [run for name in tables.split() for run in read_table(folder / f'{name}.json', again)]
    described = describe(records, labels.split(', ') if labels else ())
    shown = [run for run in records if run['label'] in {row['run'] for row in described}]
    return f'{table(described)}\n\n{describe_source(shown, tables, again)}'


PLACES = {'scores': show_scores}


def runs_as_they_are(paths: Iterable[Path]) -> dict[str, list[dict]]:
    """By their configs, runs of configs as they stand, one a seed; those in another precision where no others are."""
    runs = [run for path in paths for run in read_table(path) if run['options'].keys() <= AS_IT_IS]
    found = {}
    for config in dict.fromkeys(run['config'] for run in runs):
        own = [run for run in runs if run['config'] == config]
        found[config] = [*{run['seed']: run for run in [run for run in own if not run['options']] or own}.values()]
    return found


def render_headers(folder: Path = RECORDS, root: Path = ROOT) -> dict[str, str]:
    """The texts of configs that were trained as they stand, with their scores in their headers' line for it.

    A config whose header has no such line, ``# Top-1 ...`` or ``# mIoU ...``, is left out.
    """
    texts = {}
    for config, records in runs_as_they_are(sorted(folder.glob('*.json'))).items():
        text = (root / config).read_text()
        if HEADER.search(text):
            line = _header(summarize_row(records, records[0]['label']), records)
            texts[config] = HEADER.sub(lambda _, line=line: line, text, count=1)
    return texts


def _header(scores: Scores, records: Sequence[dict]) -> str:
    each = ', '.join(f'{score:.2f}' for score in scores.scores)
    seeds = ', '.join(map(str, scores.seeds))
    minutes = np.median([run['seconds'] for run in records]) / 60
    metric = scores.metric.capitalize() if scores.metric.islower() else scores.metric
    device = re.sub(r' \(family .*?\)', '', records[0]['device'])  # a line has 120 columns; the record has all of it
    torch = records[0]['versions']['torch']
    precision = ', bfloat16' if any(PRECISION in run['options'] for run in records) else ''
    return count_one(f'# {metric} {each} % (seeds {seeds}), {minutes:.1f} min{precision}: {device}, torch {torch}.\n')
