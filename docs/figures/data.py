"""Figures of the data that pages generate: each runs the first block of Python of its page in an empty folder."""

import contextlib
import csv
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import cv2
import tifffile
from matplotlib.figure import Figure
from PIL import Image

import vt
from docs.reports.markdown import ROOT

from .drawing import image_grid, new_figure, show_image

SEEDED = 'from mmengine.runner import set_random_seed as s; s(0); from vt.cli import main; main()'
SHOWN = 1, 4, 6  # classes of motions


@contextlib.contextmanager
def data_of(page: str) -> Iterator[Path]:
    """A folder, for a while, with the data that a page's first block writes."""
    code = re.search(r'^```python\n(.*?)^```', (ROOT / 'docs/how-to' / page).read_text(), re.DOTALL | re.MULTILINE)[1]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(compile(code, page, 'exec'), {})
        yield Path(folder)


def draw_bands() -> Figure:
    """The bands of one image of each class."""
    with data_of('channels.md') as folder:
        paths = [sorted(folder.glob(f'data/my-bands/train/{name}/*.tif'))[0] for name in ('three', 'eight')]
        images = [tifffile.imread(path) for path in paths]
    figure = new_figure(3.6)
    rows = [[*image.transpose(2, 0, 1)] for image in images]
    names = [f'{path.parent.name}/{path.name}' for path in paths]
    image_grid(figure, rows, [f'band {band}' for band in range(1, 5)], names, cmap='gray', vmin=2000, vmax=8000)
    bar = figure.colorbar(figure.axes[0].images[0], ax=figure.axes, shrink=0.8, pad=0.02)
    bar.set_label('value in the file, 16 bits')
    return figure


def draw_labels() -> Figure:
    """Images and their lines of the table of labels."""
    with data_of('several-labels.md') as folder:
        rows = [*csv.reader((folder / 'data/my-labels/train.csv').read_text().splitlines())][1:]
        labels = [(file, names.split(';') if names else ['no label']) for file, names in rows]
        chosen = [next(row for row in labels if row[1] == ['no label'])]
        chosen += [
            next(row for row in labels if row[1] != ['no label'] and len(row[1]) == number) for number in (1, 2, 3)
        ]
        images = [cv2.imread(str(folder / 'data/my-labels/train' / row[0])) for row in chosen]
    figure = new_figure(2.4)
    for axes, (file, names), image in zip(figure.subplots(1, len(chosen)), chosen, images):
        show_image(axes, image, f'{file}: {", ".join(names)}')
    return figure


def draw_videos() -> Figure:
    """The frames of videos of three classes."""
    videos, rows = vt.MovingDigits('test', num_videos=64), {}
    for video in videos:  # the first of each class
        rows.setdefault(video['gt_label'], video['frames'])
    names = []
    for label in SHOWN:
        first, top, bottom = videos.metainfo['classes'][label].split(', ')
        moves = {each.split()[0]: each.replace(' right', ' →').replace(' left', ' ←') for each in (top, bottom)}
        names.append(f'motion {label}:\n{moves.pop(first.split()[0])}, then\n{moves.popitem()[1]}')
    figure = new_figure(3.1)
    image_grid(figure, [rows[label] for label in SHOWN], [f'frame {frame}' for frame in range(1, 9)], names)
    return figure


def draw_batch() -> Image.Image:
    """Two photographs' classes as a network gets them, of ``vt check --show``."""
    from sklearn.datasets import load_sample_image

    with tempfile.TemporaryDirectory() as folder:
        for name in ('china', 'flower'):
            path = Path(folder, 'photos', name, f'{name}.jpg')
            path.parent.mkdir(parents=True)
            for part in range(5):
                Image.fromarray(load_sample_image(f'{name}.jpg')[:, 60 * part :][:, :400]).save(
                    path.with_stem(f'{part}')
                )
        command = sys.executable, '-c', SEEDED, 'check', 'vt-resnet18', 'data=photos', '--show', 'samples.png'
        subprocess.run(command, cwd=folder, env=os.environ | dict(PYTHONPATH=str(ROOT)), check=True)
        return Image.open(f'{folder}/samples.png').convert('RGB')


FIGURES = {
    'bands.png': draw_bands,
    'labels.jpg': draw_labels,
    'videos.png': draw_videos,
    'batch.jpg': draw_batch,
}
