"""The figures and tables of this project's pages: scores by number of images and by place, ablations, attention.

A record's row is named after what was varied: ``NETWORK_IMAGES`` in the sample-efficiency table, a place or a number in
the tables of places.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import pandas as pd
import yaml
from matplotlib.figure import Figure

from docs.reports import ablations, markdown
from docs.reports.markdown import Rows, plus_minus, table
from docs.reports.scores import (
    by_label,
    compare_two,
    describe_source,
    read_table,
    show_scores,
    tell_change,
    tell_verdict,
)
from vt.analysis.scores import Change, Scores, compare, describe_sweep, mean_margin
from vt.files import read_json

from .influence import describe_objects

FOLDER = Path(__file__).parent
RECORDS, MEASURED = FOLDER / 'records', FOLDER / 'measured'
AGAIN = 'python -m projects.relations.report train'
CURVES = 'sample-efficiency'
REFERENCE = 'resnet18-half'
TABLES = ('where-twin-digits', 'where-digit-scenes', 'where-sort-of-clevr', 'where-svrt-1')
ABLATIONS = [RECORDS / f'{name}.json' for name in ('twin-digits-10e', 'twin-digits', 'relational-scenes')]
ABLATIONS.insert(2, markdown.RECORDS / 'digits-half.json')

FINDINGS = yaml.safe_load((FOLDER / 'findings.yml').read_text())
VERDICTS = {
    'better': {'better': 'holds', 'worse': 'does not hold', 'no clear difference': 'no clear difference'},
    'no better': {'better': 'does not hold', 'worse': 'holds', 'no clear difference': 'no gain'},
}


def read_curves(records: Sequence[dict]) -> pd.DataFrame:
    """Scores of each network, a row, by the number of different images, a column; None where it has no run."""
    scores = pd.Series(by_label(records))
    names = scores.index.str.rsplit('_', n=1).str
    scores.index = [names[0], names[1].astype(int)]
    return scores.unstack().reindex(scores.index.unique(0))


def tabulate(curves: pd.DataFrame, tell: Callable[[Scores, Scores], str]) -> pd.DataFrame:
    """A row a network, a column a number of images, with what is told of scores and of ResNet-18's; else a dash."""
    cells = {
        f'{images:,} images': [tell(each, column[REFERENCE]) if isinstance(each, Scores) else '-' for each in column]
        for images, column in curves.items()
    }
    return pd.DataFrame({'network': curves.index} | cells)


def tabulate_scores(curves: pd.DataFrame) -> pd.DataFrame:
    """The mean and half its 95 % interval, from its own seeds' spread.

    A spread pooled over all would be too small: networks at chance have none.
    """
    told = tabulate(curves, lambda each, _: f'{each.mean:.2f}{plus_minus(mean_margin(each, [each]))}')
    first = [scores.dropna().iloc[0] for _, scores in curves.iterrows()]
    told.insert(1, 'MFLOPs', [f'{each.flops / 1e6:.1f}' for each in first])
    told.insert(2, 'M params', [f'{each.parameters / 1e6:.2f}' for each in first])
    return told


def tabulate_seeds(curves: pd.DataFrame) -> pd.DataFrame:
    """The scores themselves, of seed 0, 1 and so on: some learn the task and some don't, which a mean does not tell."""
    return tabulate(curves, lambda each, _: ', '.join(f'{score:.0f}' for score in each.scores))


def tabulate_changes(curves: pd.DataFrame) -> pd.DataFrame:
    """The same as differences from ResNet-18's mean, with Welch's 95 % interval; bold where clear of zero.

    Welch's, since a network at chance has no spread and one that learns now and then has much.
    """
    told = tabulate(curves, lambda each, reference: _bold(compare_two(each, reference)))
    return told[told['network'] != REFERENCE]


def _bold(change: Change) -> str:
    text = tell_change(change)
    return text if tell_verdict(change) == 'no clear difference' else f'**{text}**'


def draw_curves(curves: pd.DataFrame) -> Figure:
    """Mean scores with their 95 % intervals against the number of different images, and each seed as a cross."""
    figure = Figure(figsize=(7, 5), layout='constrained')
    axes = figure.subplots()
    for index, (network, row) in enumerate(curves.iterrows()):
        scores = row.dropna()
        numbers = scores.index * 1.02 ** (index - len(curves) / 2)  # beside each other, so that bars are seen
        means = [score.mean for score in scores]
        margins = [mean_margin(score, [score]) for score in scores]
        style = '-' if network.startswith('vt-') else '--' if network == REFERENCE else ':'
        bars = axes.errorbar(numbers, means, yerr=margins, fmt=f'{style}o', markersize=4, capsize=3, label=network)
        for number, score in zip(numbers, scores):
            axes.plot([number] * len(score.scores), score.scores, 'x', markersize=5, color=bars[0].get_color())
    axes.set_xscale('log', base=2)
    axes.set_xticks(curves.columns, [f'{number:,}' for number in curves.columns])
    axes.set(xlabel='different images, the same number of iterations', ylabel='top-1, %', ylim=(40, 100))
    axes.legend(fontsize='small')
    return figure


def tabulate_findings(tables: dict[str, Sequence[dict]]) -> Rows:
    """A row for each of :data:`FINDINGS`, a column a table of places: the difference, FLOPs, and whether it holds.

    Args:
        tables: records by the table's name.
    """
    rows = [{"the paper's finding": finding} for finding in FINDINGS]
    for name, records in tables.items():
        scores = by_label(records)
        for row, (placed, other, expected) in zip(rows, FINDINGS.values()):
            change = compare(scores[placed], scores[other], [*scores.values()])
            flops, verdict = scores[placed].flops / scores[other].flops, VERDICTS[expected][tell_verdict(change)]
            told = f'{change.points:+.2f} ± {change.margin:.2f} at {flops:.2f}x the FLOPs: {verdict}'
            row[name.removeprefix('where-')] = told
    return rows


def tabulate_objects(files: Sequence[Path]) -> Rows:
    """A row for each part of each network: what it takes for related objects, before and after training.

    Args:
        files: as ``python -m projects.relations.attention objects --out`` writes them, named ``objects_NETWORK.json``.
    """
    rows = []
    for path in files:
        measured = read_json(path, 'measure it: python -m projects.relations.attention objects')
        network = path.stem.removeprefix('objects_')
        rows += [{'network': network} | row for row in describe_objects(measured['before'], measured['after'])]
    return rows


def show_objects() -> str:
    """The table of attention on objects, and the figures of it."""
    files = sorted(MEASURED.glob('objects_*.json'))
    shown = [f'![Attention of {file.stem.removeprefix("objects_")}](figures/{file.stem}.jpg)' for file in files]
    return '\n\n'.join([table(tabulate_objects(files)), *shown])


def show_places(name: str) -> str:
    """A table of stages and its figure; without speeds, which runs beside others do not measure."""
    records = read_table(RECORDS / f'{name}.json')
    as_one_sweep = [run | dict(config=name) for run in records]  # configs that differ in where their modules stand
    rows = [{key: row[key] for key in row if 'images/s' not in key} for row in describe_sweep(as_one_sweep)]
    origin = describe_source(records, name, AGAIN)
    return f'{table(rows)}\n\n{origin}\n\n![Score by cost](figures/{name}.png)\n\n*Score by FLOPs.*'


def draw_places(scores: dict[str, Scores]) -> Figure:
    """Mean scores against multiply-adds, with the Pareto front as a line."""
    figure = Figure(figsize=(7, 5), layout='constrained')
    axes = figure.subplots()
    points = {label: (each.flops, each.mean) for label, each in scores.items()}
    axes.scatter(*zip(*points.values()))
    axes.plot(*zip(*front(points.values())), color='gray', zorder=0)
    for label, point in points.items():
        axes.annotate(label, point, textcoords='offset points', xytext=(4, 4), fontsize='small')
    axes.margins(0.15)
    axes.set(xlabel='multiply-adds of an image', ylabel=f'{next(iter(scores.values())).metric}, %')
    return figure


def front(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points (cost, score) than which none is better in both, sorted by cost."""
    points = sorted(points)
    return [
        (cost, score)
        for cost, score in points
        if not any((x, y) != (cost, score) and x <= cost and y >= score for x, y in points)
    ]


def show_curves() -> str:
    """The tables of scores by number of images, and their figure."""
    records = read_table(RECORDS / f'{CURVES}.json')
    curves = read_curves(records)
    parts = [
        table(tabulate_scores(curves)),
        'Differences from ResNet-18 at half width; bold where the interval excludes zero:',
        table(tabulate_changes(curves)),
        'Each seed:',
        table(tabulate_seeds(curves)),
        describe_source(records, CURVES, AGAIN),
        f'![Score by number of training images](figures/{CURVES}.png)',
        '*Score by number of different training images; crosses are single seeds.*',
    ]
    return '\n\n'.join(parts)


def read_compared() -> ablations.ComparedTasks:
    """The ablations of the recorded runs beside the paper's."""
    return ablations.compare_all(ablations.read_records(ABLATIONS))


@cache
def read_ablations() -> dict[str, dict[str, Rows]]:
    """Their tables, by task and title."""
    return ablations.tabulate(read_compared(), [MEASURED / f'{name}_cpu.json' for name in ('ablations', 'scenes')])


PLACES = {
    'scores': lambda rows: show_scores(rows, RECORDS, AGAIN),
    'ablation': lambda task: ablations.to_markdown(read_ablations()[task]),
    'objects': show_objects,
    'places': show_places,
    'findings': lambda: table(tabulate_findings({name: read_table(RECORDS / f'{name}.json') for name in TABLES})),
    'curves': show_curves,
}


def draw() -> dict[str, Figure]:
    """The figures of scores by FLOPs and by number of images, by their names."""
    figures = {name: draw_places(by_label(read_table(RECORDS / f'{name}.json'))) for name in TABLES}
    figures[CURVES] = draw_curves(read_curves(read_table(RECORDS / f'{CURVES}.json')))
    return figures
