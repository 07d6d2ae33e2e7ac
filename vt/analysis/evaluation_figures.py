"""Figures of a test report: confusion matrix, reliability diagram and training curves."""

import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from vt.untrusted_text import printable

from .evaluation import BINS

NAMED, COUNTED = 60, 20  # most classes for which the confusion matrix shows names, and shares
LINES = 8  # most curves of a figure
UNPLOTTED = ('step', 'epoch', 'iter', 'time', 'data_time', 'memory')
Curves = dict[str, dict[str, list[list[float]]]]


def read_curves(folder: Path) -> Curves:
    """Read losses and validation scores by iteration, of the training in a folder.

    Returns:
        For ``'train'`` and ``'val'``, steps and values of each name; of a resumed training, without repeated steps.
    """
    curves: Curves = dict(train={}, val={})
    for path in sorted(folder.glob('*/vis_data/scalars.json')):
        begun = set()
        for line in path.read_text(errors='replace').splitlines():
            try:
                row = json.loads(line)
                step, split = float(row['step']), 'train' if 'loss' in row else 'val'
            except (ValueError, KeyError, TypeError):  # an incomplete last line, of a run that was killed
                continue
            for name, value in row.items():
                wanted = 'loss' in name if split == 'train' else name not in UNPLOTTED
                if not wanted or not isinstance(value, (int, float)):
                    continue
                curve = curves[split].setdefault(name, [])
                if (split, name) not in begun:  # a resumed run repeats later steps
                    begun.add((split, name))
                    curve[:] = [point for point in curve if point[0] < step]
                curve.append([step, value])
    return curves


def draw_confusion(shares: np.ndarray, names: list[str]) -> Figure:
    """Draw a matrix ``(C, C)`` of shares of its rows, the labels, that are predicted as each class."""
    number = len(names)
    side = min(12.0, max(4.0, 2 + 0.35 * number))
    figure = Figure(figsize=(side + 1, side), layout='constrained')
    axes = figure.subplots()
    figure.colorbar(axes.imshow(shares, vmin=0, vmax=1, cmap='Blues'), ax=axes, shrink=0.7)
    axes.set(xlabel='predicted', ylabel='label')
    if number <= NAMED:
        short = [printable(name, 40) for name in names]
        axes.set_xticks(range(number), short, rotation=90, fontsize=7, parse_math=False)
        axes.set_yticks(range(number), short, fontsize=7, parse_math=False)
    for row, column in zip(*np.nonzero(shares >= 0.005)) if number <= COUNTED else ():
        colour = 'white' if shares[row, column] > 0.5 else 'black'
        axes.text(column, row, f'{100 * shares[row, column]:.0f}', ha='center', va='center', fontsize=7, color=colour)
    return figure


def draw_reliability(rows: list[dict[str, float]]) -> Figure:
    """Draw the accuracy of each bin against its confidence, and the number of images per bin."""
    figure = Figure(figsize=(9, 3.6), layout='constrained')
    left, right = figure.subplots(1, 2)
    used = [row for row in rows if row['samples']]
    left.plot([0, 1], [0, 1], color='grey', linestyle='--', label='calibrated')
    left.plot([row['confidence'] for row in used], [row['accuracy'] for row in used], marker='o', label='this model')
    left.set(xlabel='confidence', ylabel='accuracy', xlim=(0, 1), ylim=(0, 1.02))
    left.legend()
    right.bar([row['above'] for row in rows], [row['samples'] for row in rows], 1 / BINS, align='edge')
    right.set(xlabel='confidence', ylabel='images', xlim=(0, 1))
    return figure


def draw_curves(curves: Curves) -> Figure:
    """Draw the curves of :func:`read_curves`, training on the left and validation on the right."""
    figure = Figure(figsize=(9, 3.6), layout='constrained')
    for axes, (split, lines) in zip(figure.subplots(1, 2, sharex=True), curves.items()):
        for name, points in [*lines.items()][:LINES]:
            axes.plot(*zip(*points), marker='.', label=printable(name, 30).replace('$', r'\$'))
        axes.set(xlabel='iteration', title='training' if split == 'train' else 'validation')
        if lines:
            axes.legend(fontsize=7)
    return figure
