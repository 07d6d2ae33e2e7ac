"""The pictures and tables of the page on where transformers belong: scores by number of images and by place, attention.

A record's row is named after what was varied: ``NETWORK_IMAGES`` in the sample-efficiency table, a place or a number in
the tables of places.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from vt.checkpoints.files import read_json

from .ablation import sweep_report
from .ablation.run_scores import Scores, compare, compare_two, mean_margin
from .ablation.score_tables import describe_source, read_table, summarize_row
from .attention.object_attention import describe_objects
from .figures import save_figure
from .tables import insert, to_markdown

CURVES = 'sample-efficiency'
REFERENCE = 'resnet18-half'
PLACES = ('where-twin-digits', 'where-digit-scenes', 'where-sort-of-clevr', 'where-svrt-1')

# What the paper says, as two rows of a table of places, and what the first is of the other.
FINDINGS = {
    "modules in stage 5 beat ResNet's (table 2)": ('stage-5', 'none', 'better'),
    'late (title): stage 5 beats stage 4': ('stage-5', 'stage-4', 'better'),
    'and stage 3': ('stage-5', 'stage-3', 'better'),
    'in the place of stage 5: behind it is no better (section 4.1)': ('after-5', 'stage-5', 'no better'),
    '32 tokens are no better than 16 (table 6)': ('32-tokens', 'stage-5', 'no better'),
    'nor are 64': ('64-tokens', 'stage-5', 'no better'),
}
VERDICTS = {
    'better': {'better': 'holds', 'worse': 'does not hold', 'not told apart': 'this scale cannot tell'},
    'no better': {'better': 'does not hold', 'worse': 'holds', 'not told apart': 'no gain seen'},
}

# By network, then by the number of different images.
Curves = dict[str, dict[int, Scores]]


def read_curves(records: Sequence[dict]) -> Curves:
    """Scores of each network, from few images to many."""
    curves: Curves = {}
    for label in dict.fromkeys(run['label'] for run in records):
        network, images = label.rsplit('_', 1)
        curves.setdefault(network, {})[int(images)] = summarize_row(records, label)
    return {network: dict(sorted(scores.items())) for network, scores in curves.items()}


def tabulate_scores(curves: Curves) -> list[dict[str, str]]:
    """A row a network, a column a number of images: the mean and half its 95 % interval, from its own seeds' spread.

    A spread pooled over all would be too small: networks at chance have none. A network that was not trained on so many
    images has a dash.
    """
    rows = []
    for network, scores in curves.items():
        first = next(iter(scores.values()))
        row = {'network': network, 'MFLOPs': f'{first.flops / 1e6:.1f}', 'M params': f'{first.parameters / 1e6:.2f}'}
        told = {images: f'{each.mean:.2f}{_plus_minus(mean_margin(each, [each]))}' for images, each in scores.items()}
        rows.append(row | _cells(curves, told))
    return rows


def tabulate_seeds(curves: Curves) -> list[dict[str, str]]:
    """The scores themselves, of seed 0, 1 and so on: some learn the task and some don't, which a mean does not tell."""
    rows = []
    for network, scores in curves.items():
        told = {images: ', '.join(f'{each:.0f}' for each in score.scores) for images, score in scores.items()}
        rows.append({'network': network} | _cells(curves, told))
    return rows


def tabulate_changes(curves: Curves) -> list[dict[str, str]]:
    """The same as differences from ResNet-18's mean, with Welch's 95 % interval; bold where clear of zero.

    Welch's, since a network at chance has no spread and one that learns now and then has much.
    """
    rows = []
    for network, scores in curves.items():
        if network == REFERENCE:
            continue
        told = {}
        for images, score in scores.items():
            change = compare_two(score, curves[REFERENCE][images])
            text = f'{change.points:+.2f}{_plus_minus(change.margin)}'
            told[images] = text if change.verdict == 'not told apart' else f'**{text}**'
        rows.append({'network': network} | _cells(curves, told))
    return rows


def _cells(curves: Curves, told: dict[int, str]) -> dict[str, str]:
    """A column a number of images, with a dash where there is nothing to tell."""
    return {f'{images:,} images': told.get(images, '-') for images in _numbers(curves)}


def _numbers(curves: Curves) -> list[int]:
    """Every number of images that a network was trained on."""
    return sorted({images for scores in curves.values() for images in scores})


def _plus_minus(margin: float) -> str:
    """Nothing where there is one seed of each."""
    return '' if np.isnan(margin) else f' ± {margin:.2f}'


def draw_curves(curves: Curves) -> Figure:
    """Mean scores with their 95 % intervals against the number of different images, and each seed as a cross."""
    figure = Figure(figsize=(7, 5), layout='constrained')
    axes = figure.subplots()
    for index, (network, scores) in enumerate(curves.items()):
        numbers = np.array([*scores]) * 1.02 ** (index - len(curves) / 2)  # beside each other, so that bars are seen
        means = [score.mean for score in scores.values()]
        margins = [mean_margin(score, [score]) for score in scores.values()]
        style = '-' if network.startswith('vt-') else '--' if network == REFERENCE else ':'
        bars = axes.errorbar(numbers, means, yerr=margins, fmt=f'{style}o', markersize=4, capsize=3, label=network)
        for number, score in zip(numbers, scores.values()):
            axes.plot([number] * len(score.scores), score.scores, 'x', markersize=5, color=bars[0].get_color())
    axes.set_xscale('log', base=2)
    axes.set_xticks(_numbers(curves), [f'{number:,}' for number in _numbers(curves)])
    axes.set(xlabel='different images, the same number of iterations', ylabel='top-1, %', ylim=(40, 100))
    axes.legend(fontsize='small')
    return figure


def tabulate_findings(tables: dict[str, Sequence[dict]]) -> list[dict[str, str]]:
    """A row for each of :data:`FINDINGS`, a column a table of places: the difference, FLOPs, and whether it holds.

    Args:
        tables: records by the table's name.
    """
    rows = [{"the paper's finding": finding} for finding in FINDINGS]
    for name, records in tables.items():
        scores = {label: summarize_row(records, label) for label in dict.fromkeys(run['label'] for run in records)}
        for row, (placed, other, expected) in zip(rows, FINDINGS.values()):
            change = compare(scores[placed], scores[other], [*scores.values()])
            flops, verdict = scores[placed].flops / scores[other].flops, VERDICTS[expected][change.verdict]
            told = f'{change.points:+.2f} ± {change.margin:.2f} at {flops:.2f}x the FLOPs: {verdict}'
            row[name.removeprefix('where-')] = told
    return rows


def tabulate_objects(files: Sequence[Path]) -> list[dict[str, str]]:
    """A row for each part of each network: what it takes for related objects, before and after training.

    Args:
        files: as ``tools/attention.py objects --out`` writes them, named ``objects_NETWORK.json``.
    """
    rows = []
    for path in files:
        measured = read_json(path, 'measure it: tools/attention.py objects')
        network = path.stem.removeprefix('objects_')
        rows += [{'network': network} | row for row in describe_objects(measured['before'], measured['after'])]
    return rows


def write_page(page: Path, folder: Path, pictures: Path) -> None:
    """Write the page's generated places.

    Args:
        page: Markdown, with its marks.
        folder: of the records; a table that is not there leaves its place as it is.
        pictures: folder for the pictures, beside the page.
    """
    pictures.mkdir(exist_ok=True)
    if files := sorted(page.parent.glob('attention/objects_*.json')):
        shown = [pictures / f'{file.stem}.jpg' for file in files]
        links = [f'![Where {each.stem} looks]({pictures.name}/{each.name})' for each in shown if each.is_file()]
        insert(page, 'objects', '\n\n'.join([to_markdown(tabulate_objects(files)), *links]))
    tables = {table: read_table(folder / f'{table}.json') for table in PLACES if (folder / f'{table}.json').is_file()}
    for table, records in tables.items():
        save_figure(sweep_report.draw(records), pictures / f'{table}.png', dpi=80)
        origin = describe_source(records, table)
        picture = f'![Scores against what they cost](where/{table}.png)'
        insert(page, f'places {table}', f'{to_markdown(sweep_report.tabulate(records))}\n\n{origin}\n\n{picture}')
    if tables:
        insert(page, 'findings', to_markdown(tabulate_findings(tables)))
    if (folder / f'{CURVES}.json').is_file():
        records = read_table(folder / f'{CURVES}.json')
        curves = read_curves(records)
        save_figure(draw_curves(curves), pictures / f'{CURVES}.png', dpi=80)
        insert(
            page,
            'curves',
            f'{to_markdown(tabulate_scores(curves))}\n\n'
            f'Differences from ResNet-18 of half the width; bold where the interval is clear of zero:\n\n'
            f'{to_markdown(tabulate_changes(curves))}\n\n'
            f'Each seed:\n\n'
            f'{to_markdown(tabulate_seeds(curves))}\n\n'
            f'{describe_source(records, CURVES)}\n\n'
            f'![Scores against the number of images](where/{CURVES}.png)',
        )
