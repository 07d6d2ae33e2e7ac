"""Charts of what was measured: records, benchmarks, and tables of pages."""

import re

from matplotlib.figure import Figure

from docs.reports import benchmark
from docs.reports.markdown import ROOT
from projects.speed import performance
from projects.speed.speeds import by_kind, read_pairs
from vt.files import read_json

from .drawing import BLUE, DARK, GREY, ORANGE, new_figure

EXPORT = performance.MEASURED / 'export/vt-resnet18_8xb32-90e_in1k_cpu.json'
FORMATS = dict(onnx='ONNX Runtime', openvino='OpenVINO', int8='ONNX Runtime, int8')
NAMED = {
    'hrformer-small',
    'ps-vit-b14',
    'ceit-small',
    'mvitv2-tiny',
    'rest-small',
    'shuffle-tiny',
    'pvtv2-b2',
    'swin-tiny',
}
NAMED |= {'vit-early-conv', 'deit-small', 'cait-s24', *benchmark.PAIR}


def draw_models() -> Figure:
    """Accuracy against latency of all models that were trained on Fashion-MNIST."""
    ranked = benchmark.rank_field()
    figure = new_figure(4.2)
    axes = figure.subplots()
    is_ours = ranked['model'].isin(benchmark.PAIR)
    for rows, colour in ((ranked[~is_ours], GREY), (ranked[is_ours], ORANGE)):
        axes.scatter(1e3 * rows['latency'], rows['top1'], 45, colour, zorder=2)
    for row in ranked[ranked['model'].isin(NAMED)].itertuples():
        place = 1e3 * row.latency, row.top1
        axes.annotate(row.model, place, xytext=(7, -3), textcoords='offset points', fontsize=9)
    axes.set(xlabel=f'{benchmark.tell_latency(benchmark.FIELD_LATENCIES[0])} (left is faster)', xlim=(14, 57))
    axes.set(ylabel='top-1 accuracy, %')
    axes.grid(alpha=0.3)
    return figure


def draw_speed() -> Figure:
    """How many times faster the models with tokens are than those without."""
    found = performance.read_all(performance.MEASURED)
    names = 'necks_800x1216', 'segmentors_800x1216', 'resnet18', 'resnet50'
    pairs = by_kind(read_pairs(performance.select(found, *names)))
    labels = [f'{pair["inference"]["name"]}\ninstead of {pair["inference"]["first_short"]}' for pair in pairs]
    figure = new_figure(3.4)
    axes = figure.subplots()
    for offset, kind, colour in ((-0.2, 'inference', BLUE), (0.2, 'training', ORANGE)):
        values = [pair[kind]['faster'] for pair in pairs]
        bars = axes.barh([place + offset for place in range(len(pairs))], values, 0.38, color=colour, label=kind)
        axes.bar_label(bars, [f'{value:.2f}x' for value in values], padding=4)
    axes.axvline(1, color=DARK, linewidth=1)
    axes.set(yticks=range(len(pairs)), yticklabels=labels, xlabel='times as fast (1 = as fast as without tokens)')
    axes.invert_yaxis()
    axes.legend(loc='lower right')
    return figure


def draw_formats() -> Figure:
    """Milliseconds an image of exported models."""
    found = read_json(EXPORT, 'measured by projects/speed/export.sh')
    times = {row['format']: row for row in found['results']}
    values = [1e3 * times['onnx']['eager'], *(1e3 * times[name]['seconds'] for name in FORMATS)]
    figure = new_figure(2.1)
    axes = figure.subplots()
    bars = axes.barh(['PyTorch', *FORMATS.values()], values, color=[GREY, BLUE, BLUE, ORANGE])
    axes.bar_label(bars, [f'{value:.1f} ms' for value in values], padding=4)
    axes.set(xlabel=f'time for one image, {found["size"][4:]}, {found["device"].split(" (")[0]}, 1 thread')
    axes.invert_yaxis()
    return figure


def draw_recalls() -> Figure:
    """The recalls of both classes by the way to correct the imbalance, of the page's table."""
    page = (ROOT / 'docs/how-to/imbalance.md').read_text()
    rows = re.findall(r"^\| `'?(\w+)'?` \| [\d., ]+ \| ([\d.]+) \| ([\d.]+) \|", page, re.MULTILINE)
    figure = new_figure(3)
    axes = figure.subplots()
    for offset, column, name, colour in ((-0.2, 1, 'rare class: eights', ORANGE), (0.2, 2, 'all other digits', GREY)):
        values = [float(row[column]) for row in rows]
        bars = axes.bar([place + offset for place in range(len(rows))], values, 0.38, color=colour, label=name)
        axes.bar_label(bars, [f'{value:.0f} %' for value in values], padding=2)
    labels = [f'imbalance={name}' for name, *_ in rows]
    axes.set(xticks=range(len(rows)), xticklabels=labels, ylabel='recall', yticks=[], ylim=(0, 110))
    figure.legend(loc='outside upper center', ncols=2)
    return figure


FIGURES = {
    'models.png': draw_models,
    'speed.png': draw_speed,
    'formats.png': draw_formats,
    'imbalance.png': draw_recalls,
}
