"""Scores of trained runs as tables: one after each mark of a page, and one line above each config that was trained.

A page names its tables, ``<!-- scores TABLE TABLE: LABEL, LABEL -->``, where each TABLE is a file of records in
``docs/records`` and a LABEL one of their rows; all of them where none is named. The first is what the others are
compared with.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vt.analysis.tables import insert, to_markdown
from vt.checkpoints.files import read_json, write_atomically
from vt.engine.run_record import check_record
from vt.errors import UserError

from .run_scores import Scores, compare, read_records, summarize

ORIGIN = ('date', 'device', 'versions', 'seconds')  # of a record, beside its scores
MARK = re.compile(r'<!-- (scores ([\w -]+?)(?:: (.+?))?) -->')
HEADER = re.compile(r'^# (?:Top-1|mIoU) .*\n', re.MULTILINE)
# Options that leave a config what it is: the precision of its steps, who takes them, where its teacher's weights are.
PRECISION = 'optim_wrapper.type'
AS_IT_IS = {PRECISION, 'optim_wrapper.optimizer.fused', 'model.teacher_checkpoint'}


def read_table(path: Path) -> list[dict]:
    """The records of a table, a run each, with the ``label`` of its row.

    Raises:
        MissingFileError: there is none.
    """
    return read_json(path, f'train it: bash tools/reproduce.sh {path.stem}', list)


def label_records(work_dirs: Sequence[Path]) -> list[dict]:
    """Records of finished runs, labelled by their work directories' names, ``LABEL_seed-SEED``.

    Raises:
        MissingFileError: a run is not finished.
        UserError: a run was trained without validation.
    """
    return [record for folder in work_dirs for record in label_run(folder)]


def label_run(folder: Path) -> list[dict]:
    """The record of one run; see :func:`label_records`."""
    label = folder.name.rsplit('_seed-', 1)[0]
    return [dict(label=label) | check_record(record, folder, ORIGIN) for record in read_records([folder])]


def describe(records: Sequence[dict], labels: Sequence[str] = ()) -> list[dict[str, str]]:
    """A row for each label: scores of its seeds, their mean, and the change against the first label's.

    Args:
        records: as :func:`read_table` gives them.
        labels: rows to show, in their order; all, in the records' order, by default.

    Raises:
        UserError: there are no records of a label; the rows' metrics differ.
    """
    rows = {label: summarize_row(records, label) for label in labels or dict.fromkeys(run['label'] for run in records)}
    reference, *_ = rows.values()
    if len(metrics := {scores.metric for scores in rows.values()}) > 1:
        raise UserError(f'{" and ".join(sorted(metrics))} are not compared: give runs of one metric')
    described = []
    for label, scores in rows.items():
        change = compare(scores, reference, list(rows.values()))
        margin = '' if np.isnan(change.margin) else f' ± {change.margin:.2f}'
        described.append(
            {
                'run': label,
                f'{scores.metric} (%), each seed': ', '.join(f'{score:.2f}' for score in scores.scores),
                'mean': f'{scores.mean:.2f}',
                'change (95 %)': '' if scores is reference else f'{change.points:+.2f}{margin}',
                'MFLOPs': f'{scores.flops / 1e6:.1f}',
                'M params': f'{scores.parameters / 1e6:.2f}',
            }
        )
    return described


def summarize_row(records: Sequence[dict], label: str) -> Scores:
    """Scores of a label's seeds.

    Raises:
        UserError: there are no records of it, or a seed comes twice.
    """
    runs = sorted((run for run in records if run['label'] == label), key=lambda run: run['seed'])
    if len({run['seed'] for run in runs}) < len(runs):
        raise UserError(f'a seed of {label!r} comes twice: give runs of one setting, LABEL_seed-SEED, once each')
    if not runs:
        raise UserError(f'no records of {label!r}; there are: {", ".join(sorted({run["label"] for run in records}))}')
    return summarize(runs, label, None, Path(runs[0]['config']).stem, runs[0]['length'])


def describe_origin(records: Sequence[dict]) -> str:
    """Where a table is from: seeds, dates, devices, versions and hours."""
    seeds = ', '.join(map(str, sorted({run['seed'] for run in records})))
    dates = sorted({run['date'] for run in records})
    devices = ' and '.join(sorted({run['device'] for run in records}))
    versions = ' and '.join(sorted({run['versions']['torch'] for run in records}))
    hours = sum(run['seconds'] for run in records) / 3600
    period = dates[0] if len(dates) == 1 else f'{dates[0]} to {dates[-1]}'
    return f'Seeds {seeds}; {period}, {devices}, torch {versions}, {hours:.1f} hours of training iterations.'


def describe_source(records: Sequence[dict], tables: str) -> str:
    """Where tables are from, and the command that trains them again."""
    return f'{describe_origin(records)} Again: `bash tools/reproduce.sh {tables}`.'


def write_page(page: Path, folder: Path) -> None:
    """Write a page's tables of scores, from the records in ``folder``; a sentence where there are none."""
    for mark, tables, labels in MARK.findall(page.read_text()):
        if missing := [table for table in tables.split() if not (folder / f'{table}.json').is_file()]:
            insert(page, mark, f'Not trained yet: `bash tools/reproduce.sh {" ".join(missing)}`.')
            continue
        records = [run for table in tables.split() for run in read_table(folder / f'{table}.json')]
        rows = describe(records, [label.strip() for label in labels.split(',')] if labels else ())
        shown = [run for run in records if run['label'] in {row['run'] for row in rows}]
        insert(page, mark, f'{to_markdown(rows)}\n\n{describe_source(shown, tables)}')


def write_headers(root: Path, folder: Path) -> None:
    """Write the scores of configs that were trained as they stand into their headers' line for it.

    Those in another precision count where there are no others. A config whose header has such a line,
    ``# Top-1 ...`` or ``# mIoU ...``, but no records keeps it.
    """
    tables = (read_table(path) for path in sorted(folder.glob('*.json')))
    runs = [run for table in tables for run in table if run['options'].keys() <= AS_IT_IS]
    for config in dict.fromkeys(run['config'] for run in runs):
        own = [run for run in runs if run['config'] == config]
        records = [*{run['seed']: run for run in [run for run in own if not run['options']] or own}.values()]
        text = (root / config).read_text()
        if HEADER.search(text):
            line = _header(summarize_row(records, records[0]['label']), records)
            write_atomically(root / config, HEADER.sub(lambda _, line=line: line, text, count=1))


def _header(scores: Scores, records: Sequence[dict]) -> str:
    each = ', '.join(f'{score:.2f}' for score in scores.scores)
    seeds = ', '.join(map(str, scores.seeds))
    minutes = np.median([run['seconds'] for run in records]) / 60
    metric = scores.metric.capitalize() if scores.metric.islower() else scores.metric
    device = re.sub(r' \(family .*?\)', '', records[0]['device'])  # a line has 120 columns; the record has all of it
    torch = records[0]['versions']['torch']
    precision = ', bfloat16' if any(PRECISION in run['options'] for run in records) else ''
    return f'# {metric} {each} % (seeds {seeds}), {minutes:.1f} min{precision}: {device}, torch {torch}.\n'
