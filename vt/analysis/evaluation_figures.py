"""Figures of a test: confusion matrix, reliability diagram, and the curves of the training before it."""

import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from vt.untrusted_text import printable

from .evaluation import BINS

NAMED, COUNTED = 60, 20  # classes whose names, and whose shares, the confusion matrix shows
LINES = 8  # curves of a figure
UNPLOTTED = ('step', 'epoch', 'iter', 'time', 'data_time', 'memory')
Curves = dict[str, dict[str, list[list[float]]]]


def read_curves(folder: Path) -> Curves:
    """Losses by iteration, and what was validated, by epoch or iteration, of the training in a folder.

    Returns:
        For ``'train'`` and ``'val'`` each name's steps and values; of a training that was resumed, what counts.
    """
    curves: Curves = dict(train={}, val={})
    for path in sorted(folder.glob('*/vis_data/scalars.json')):
        begun = set()
        for line in path.read_text(errors='replace').splitlines():
            try:
                row = json.loads(line)
                step, split = float(row['step']), 'train' if 'loss' in row else 'val'
            except (ValueError, KeyError, TypeError):  # the last line of a run that was killed
                continue
            for name, value in row.items():
                wanted = 'loss' in name if split == 'train' else name not in UNPLOTTED
                if not wanted or not isinstance(value, (int, float)):
                    continue
                curve = curves[split].setdefault(name, [])
                if (split, name) not in begun:  # a run goes on from here, or starts over
                    begun.add((split, name))
                    curve[:] = [point for point in curve if point[0] < step]
                curve.append([step, value])
    return curves


def draw_confusion(matrix: np.ndarray, names: list[str]) -> Figure:
    """Shares of each row in colour."""
    shares, number = shares_of(matrix), len(names)
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
    """Accuracy of each bin against its confidence, and how many images are in it."""
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
    """The curves of :func:`read_curves`, those of training beside those of validation."""
    figure = Figure(figsize=(9, 3.6), layout='constrained')
    for axes, (split, lines), step in zip(figure.subplots(1, 2), curves.items(), ('iteration', 'epoch or iteration')):
        for name, points in [*lines.items()][:LINES]:
            axes.plot(*zip(*points), marker='.', label=printable(name, 30).replace('$', r'\$'))
        axes.set(xlabel=step, title='training' if split == 'train' else 'validation')
        if lines:
            axes.legend(fontsize=7)
    return figure


def shares_of(matrix: np.ndarray) -> np.ndarray:
    """A confusion matrix in shares of its rows, 0 for a row without anything."""
    return np.nan_to_num(matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-12))
