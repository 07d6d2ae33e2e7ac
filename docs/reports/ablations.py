"""Finished runs laid beside the paper's tables 2 to 7 and 9, each against the model itself: rows, and a figure."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vt.analysis.scores import Scores, compare, pick_score
from vt.errors import UserError

from .markdown import Rows, cells, plus_minus, table
from .paper import ABLATIONS, load_tables
from .records import read_recorded
from .scores import tell_verdict
from .speeds import read_medians

VARIANTS = {name for each in ABLATIONS.values() for name in each.variants.values() if name}
TITLES = {2: 'VT-ResNet against its ResNet', 9: 'VT-FPN against FPN'}
TITLES |= {number: ablation.title for number, ablation in ABLATIONS.items()}
FORMS = {
    'variant': '{label}',
    'SCORE (%), seeds': '{scores.mean:.2f}{spread} ({seeds})',
    'change (95 %)': '{change.points:+.2f}{margin}',
    'verdict': '{verdict}',
    'MFLOPs': '{scores.flops:M.1f}',
    'M params': '{scores.parameters:M.2f}',
    'speed, inference / training': '{inference:.2f}x / {training:.2f}x',
    "paper's SCORE": '{paper[score]}',
    'change': '{paper_change:+.1f}',
    "paper's MFLOPs": '{paper[mflops]}',
    "paper's M params": '{paper[mparams]}',
}
# By task and by the paper's number of the table, a row a variant: its ``label``, our ``scores``, those of the model
# itself, ``reference``, the ``change`` against it, the ``paper``'s row and its change; no changes of the model itself.
ComparedTasks = dict[str, dict[int, list[dict]]]


@dataclass(frozen=True)
class ConfigScores(Scores):
    """Scores of the runs of one config.

    Its name consists of ``model``, such as ``vt-resnet18-half``, ``variant``, the ablated part (None for the model
    itself), and ``data``, the data set and the rest. ``length`` is that of the training, such as ``'10 epochs'``.
    """

    model: str
    variant: str | None
    data: str
    length: str

    @property
    def task(self) -> str:
        """Data and length of the training; only scores of the same task are compared."""
        return f'{self.data}, {self.length}'

    @property
    def config(self) -> str:
        """Name of the config."""
        return '_'.join(part for part in (self.model, self.variant, self.data) if part)

    @property
    def spread(self) -> float:
        """Standard deviation over the seeds, in percentage points; NaN for one seed."""
        return float(np.std(self.scores, ddof=1)) if len(self.scores) > 1 else float('nan')


def read_run(path: Path) -> list[dict]:
    """Read the record of a work directory, or those of a file.

    Raises:
        MissingFileError: a run is not finished, or does not exist.
        UserError: a record is damaged, or a run was trained without validation.
    """
    source = path / 'training.json' if path.is_dir() else path
    records = read_recorded(source, f'train it first: tools/train.py CONFIG --work-dir {path}')
    for record in records:
        if missing := [key for key in ('config', 'length', 'seed', 'options') if key not in record]:
            raise UserError(f'{source} lacks {", ".join(missing)}')
        if not record.get('metrics'):
            raise UserError(f'{record["config"]}, seed {record["seed"]}: the run has no score')
    return records


def read_records(paths: Iterable[Path]) -> list[dict]:
    """Read the records of runs, sorted as in :func:`arrange`; raises as :func:`read_run` and :func:`arrange`."""
    return arrange(record for path in paths for record in read_run(path))


def arrange(records: Iterable[dict]) -> list[dict]:
    """Sort records by config, length and seed.

    Raises:
        UserError: a seed of a config occurs twice.
    """
    records, seen = [*records], set()
    for record in records:
        run = record['config'], record['length'], record['seed'], json.dumps(record['options'], sort_keys=True)
        if run in seen:
            raise UserError(f'{run[0]}, {run[1]}, seed {run[2]}: the run occurs twice; name each run once')
        seen.add(run)
    return sorted(records, key=lambda record: (record['config'], record['length'], record['seed']))


def gather(records: Iterable[dict]) -> dict[str, list[ConfigScores]]:
    """Scores of each task's configs.

    Raises:
        UserError: runs of a config differ in more than their seeds.
    """
    by_config = defaultdict(list)
    for record in records:
        by_config[Path(record['config']).stem, record['length']].append(record)
    tasks = defaultdict(list)
    for (stem, length), runs in by_config.items():
        if any(run['options'] != runs[0]['options'] for run in runs):
            raise UserError(f'{stem}, {length}: the runs differ in their --cfg-options; give those of one setting')
        model, *rest = stem.split('_')
        variant = next((part for part in rest if part in VARIANTS), None)
        scored = [pick_score(run['metrics']) for run in runs]
        scores = ConfigScores(
            seeds=tuple(run['seed'] for run in runs),
            scores=tuple(score for _, score in scored),
            metric=scored[0][0],
            flops=runs[0]['flops'],
            parameters=runs[0]['parameters'],
            model=model,
            variant=variant,
            data='_'.join(part for part in rest if part != variant),
            length=length,
        )
        tasks[scores.task].append(scores)
    return dict(tasks)


def compare_with_paper(task: list[ConfigScores]) -> dict[int, list[dict]]:
    """All of the paper's tables that the configs of a task have at least two rows of."""
    model = 'VT-R34' if any('resnet34' in scores.model for scores in task) else 'VT-R18'
    plain = {scores.model: scores for scores in task if scores.variant is None}
    tables = {}
    for name in plain:
        if f'vt-{name}' in plain:
            number, key, names = 2, 'table2_default_recipe', (model.removeprefix('VT-'), model)
            if task[0].metric == 'mIoU':
                number, key, names = 9, 'table9_coco_stuff_800x1216', ('R-50 FPN', 'R-50 VT-FPN')
            papers = {row['model']: row for row in load_tables()[key]}
            rows = [(own, own, papers[paper]) for own, paper in zip((name, f'vt-{name}'), names)]
            tables[number] = _compare(task, plain, rows, reference=f'vt-{name}')
            break
    ours = {scores.variant: scores for scores in task if re.fullmatch(r'vt-resnet\d+(-half)?', scores.model)}
    for number, ablation in ABLATIONS.items():
        rows = [(f'{ablation.column}: {row["value"]}', row['variant'], row) for row in ablation.rows(model)]
        tables[number] = _compare(task, ours, rows, reference=None)
    return {number: rows for number, rows in tables.items() if len(rows) > 1}


def _compare(
    task: list[Scores],
    ours: dict[str | None, Scores],
    rows: list[tuple[str, str | None, dict]],
    reference: str | None,
) -> list[dict]:
    """Rows of label, key in ``ours`` and the paper's row, each against the row whose key is ``reference``."""
    if reference not in ours:
        return []
    papers = {key: _read_paper(paper) for _, key, paper in rows}
    compared = []
    for label, key, _ in rows:
        if key in ours:
            row = dict(label=label, scores=ours[key], reference=ours[reference], paper=papers[key])
            if key != reference:
                row['change'] = compare(ours[key], ours[reference], task)
                row['paper_change'] = papers[key]['score'] - papers[reference]['score']
            compared.append(row)
    return compared


def _read_paper(row: dict) -> dict[str, float | None]:
    """A row of the paper: its score in percent, million multiply-adds and million parameters (None: not given)."""
    if 'miou' in row:
        return dict(score=row['miou'], mflops=1000 * row['gflops_total'], mparams=None)
    return dict(score=row.get('top1', row.get('top1_val')), mflops=row['mflops'], mparams=row['mparams'])


def describe(rows: list[dict], speeds: dict[tuple[str, str], float]) -> Rows:
    """One of the paper's tables as text: ours, then the paper's.

    Args:
        rows: the comparisons of a table.
        speeds: seconds of whole models by config and kind; may lack configs.
    """
    described = []
    for row in rows:
        own, reference = row['scores'], row['reference']
        ratios = {kind: speeds.get((reference.config, kind)) for kind in ('inference', 'training')}
        ratios = {kind: time / speeds.get((own.config, kind), np.nan) for kind, time in ratios.items() if time}
        told = dict(margin='')
        if 'change' in row:
            told = dict(margin=plus_minus(row['change'].margin), verdict=tell_verdict(row['change']))
        described.append(row | ratios | told | dict(spread=plus_minus(own.spread), seeds=len(own.seeds)))
    metric = rows[0]['scores'].metric
    return cells(described, {title.replace('SCORE', metric): form for title, form in FORMS.items()})


def tabulate(tasks: ComparedTasks, paths: list[Path]) -> dict[str, dict[str, Rows]]:
    """Rows of the compared tables by task and by their titles; speeds are of files of ``tools/benchmark.py --out``."""
    speeds = read_medians(paths).set_index(['model', 'kind'])['median'] if paths else {}
    return {
        task: {f'Table {n} on {task}: {TITLES[n]}': describe(rows, dict(speeds)) for n, rows in tables.items()}
        for task, tables in tasks.items()
    }


def compare_all(records: Iterable[dict]) -> ComparedTasks:
    """The paper's tables that these runs have rows of, by task and number.

    Raises:
        UserError: no two runs belong to one of them.
    """
    tasks = {name: compare_with_paper(scores) for name, scores in gather(records).items()}
    if not any(tasks.values()):
        raise UserError('no two of these runs stand in one table of the paper; give a model and a variant of it')
    return {name: tables for name, tables in tasks.items() if tables}


def to_markdown(tables: dict[str, Rows]) -> str:
    """The tables of a task, each below its title."""
    return '\n\n'.join(f'**{title}**\n\n{table(rows)}' for title, rows in tables.items()) + '\n'


def to_csv(tasks: dict[str, dict[str, Rows]]) -> str:
    """All rows, with their task and table; the score's column does not name its metric, which they then share."""
    rows = [
        {'task': task, 'table': re.search(r'\d+', title)[0]}
        | {re.sub('top-1|mIoU', 'score', name): cell for name, cell in row.items()}
        for task, tables in tasks.items()
        for title, found in tables.items()
        for row in found
    ]
    return pd.DataFrame(rows).to_csv(index=False, lineterminator='\r\n')


def draw(tasks: ComparedTasks) -> Figure:
    """Every change against the model itself, with its interval and the paper's beside it; a panel a task."""
    figure = Figure(figsize=(6.5 * len(tasks), 5), layout='constrained')
    panels = figure.subplots(1, len(tasks), squeeze=False)
    for axes, (task, tables) in zip(panels[0], tasks.items()):
        _draw_task(axes, [row | dict(table=n) for n, rows in tables.items() for row in rows if 'change' in row])
        axes.set_title(task)
    return figure


def _draw_task(axes: Axes, rows: list[dict]) -> None:
    places = np.arange(len(rows))[::-1]
    points = [row['change'].points for row in rows]
    margins = np.nan_to_num([row['change'].margin for row in rows])
    axes.errorbar(points, places, xerr=margins, fmt='o', capsize=3, label='ours, 95 %')
    axes.plot([row['paper_change'] for row in rows], places, 'D', mfc='none', color='tab:orange', label='paper')
    for row, place in zip(rows, places):
        changes = np.array(row['scores'].scores) - row['reference'].mean
        axes.plot(changes, np.full(len(changes), place - 0.2), '.', color='tab:blue', alpha=0.4)
    axes.axvline(0, color='grey', linewidth=1)
    axes.set_yticks(places, [f'{row["label"]}  (table {row["table"]})' for row in rows])
    axes.set_ylim(-1, len(rows))
    axes.set_xlabel(f'change of {rows[0]["scores"].metric} against the model itself, points')
    axes.legend(fontsize='small')
