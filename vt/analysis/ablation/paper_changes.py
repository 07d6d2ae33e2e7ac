"""Scores of finished runs laid beside the paper's tables 2 to 7 and 9, each against the model itself."""

from dataclasses import dataclass

from vt.analysis.paper import ABLATIONS, load_tables

from .run_scores import Change, Scores, compare


@dataclass(frozen=True)
class PaperRow:
    """A row of the paper: its score in percent, million multiply-adds and million parameters (None: not given)."""

    score: float
    mflops: float
    mparams: float | None


@dataclass(frozen=True)
class Comparison:
    """One row of a table of the paper's: a variant against the model itself, ours and the paper's.

    The changes, ours and the paper's score in points, are None for the model itself.
    """

    table: int
    label: str
    scores: Scores
    change: Change | None
    paper: PaperRow
    paper_change: float | None


def compare_with_paper(task: list[Scores]) -> dict[int, list[Comparison]]:
    """All of the paper's tables that the configs of a task have at least two rows of."""
    model = 'VT-R34' if any('resnet34' in scores.model for scores in task) else 'VT-R18'
    tables = [_compare_twins(task, model)]
    for number, ablation in ABLATIONS.items():
        papers = {row[ablation.column]: row for row in ablation.rows(model)}
        rows = [
            (f'{ablation.column}: {value}', name, _paper_row(row))
            for value, name in ablation.variants.items()
            if (row := papers.get(value))
        ]
        ours = {scores.variant: scores for scores in task if scores.model.startswith('vt-resnet')}
        tables.append(_compare(number, task, ours, rows, reference=None))
    return {rows[0].table: rows for rows in tables if len(rows) > 1}


def _compare_twins(task: list[Scores], model: str) -> list[Comparison]:
    """Table 2 or 9: a model and the one that it replaces."""
    if task[0].metric == 'mIoU':
        number, table, names = 9, 'table9_coco_stuff_800x1216', ('R-50 FPN', 'R-50 VT-FPN')
    else:
        number, table, names = 2, 'table2_default_recipe', (model.removeprefix('VT-'), model)
    papers = {row['model']: row for row in load_tables()[table]}
    plain = {scores.model: scores for scores in task if scores.variant is None}
    for name in plain:
        if f'vt-{name}' in plain:
            ours = (name, f'vt-{name}')
            rows = [(own, own, _paper_row(papers[paper])) for own, paper in zip(ours, names)]
            return _compare(number, task, plain, rows, reference=f'vt-{name}')
    return []


def _paper_row(row: dict) -> PaperRow:
    if 'miou' in row:
        return PaperRow(row['miou'], 1000 * row['gflops_total'], None)
    return PaperRow(row.get('top1', row.get('top1_val')), row['mflops'], row['mparams'])


def _compare(
    number: int,
    task: list[Scores],
    ours: dict[str | None, Scores],
    rows: list[tuple[str, str | None, PaperRow]],
    reference: str | None,
) -> list[Comparison]:
    """Rows of label, key in ``ours`` and the paper's row, each against the row whose key is ``reference``."""
    if reference not in ours:
        return []
    papers = {key: paper for _, key, paper in rows}
    comparisons = []
    for label, key, paper in rows:
        if key == reference:
            comparisons.append(Comparison(number, label, ours[key], None, paper, None))
        elif key in ours:
            change = compare(ours[key], ours[reference], task)
            paper_change = paper.score - papers[reference].score
            comparisons.append(Comparison(number, label, ours[key], change, paper, paper_change))
    return comparisons
