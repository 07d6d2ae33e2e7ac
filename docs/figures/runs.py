"""Figures of runs that are trained here, once, in ``work_dirs/figures``."""

from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from mmengine.config import ConfigDict
from mmengine.model import BaseModel
from PIL import Image
from sklearn.datasets import load_sample_image

import vt
from vt import apis
from vt.analysis.attention.heat_maps import HeatMapper
from vt.analysis.attention.token_figure import glow, times_uniform

from .drawing import BLUE, DARK, GREY, ORANGE, image_grid, new_figure, show_image

FOLDER = Path('work_dirs/figures')
SCENE = 128, 128  # height and width
METHODS = 'gradcam', 'gradcamplusplus', 'xgradcam'
CUT = [*range(427, 740), *range(1167, 1280)]  # columns of the two photographs that the figure leaves out
PART = np.s_[64:320, 32:288]  # of a large image, so that digits lie across the edges of windows
ARROW = dict(arrowprops=dict(arrowstyle='->', color=DARK), va='center')
PATIENCE = 5  # epochs
PLACES = [  # left, right, top and bottom of the centres of crops
    ('pagoda', (110, 310, 100, 360)),
    ('flower', (850, 1040, 130, 310)),
    ('background', (420, 570, 60, 360)),
    ('background', (700, 760, 60, 360)),
    ('background', (1140, 1210, 60, 360)),
]
RUNS = {  # ten minutes, and twice two, of one core
    'scenes': ('vt-fpn-tuned_r18_digit-scenes', {}),
    'digits': (
        'vt-resnet18-half_digits',
        {'epochs': 40, 'patience': PATIENCE, 'train_dataloader.dataset.indices': 480},
    ),
    'photos': ('vt-resnet18-half', {'data': FOLDER / 'crops', 'image_size': 64, 'epochs': 30}),
}


def photographs() -> np.ndarray:
    """Return two photographs side by side, in RGB."""
    return np.concatenate([load_sample_image('china.jpg'), load_sample_image('flower.jpg')], axis=1)


def write_crops(folder: Path) -> None:
    """Write crops of the photographs by class."""
    image, random = photographs(), np.random.default_rng(0)
    for name, (left, right, top, bottom) in PLACES:
        for number in range(40):
            x, y = random.integers(left, right), random.integers(top, bottom)
            path = folder / name / f'{left}-{number}.png'
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image[y - 60 : y + 60, x - 60 : x + 60]).save(path)


@cache
def trained(name: str) -> vt.TrainedRun:
    """A run, trained if it is not there; an interrupted one is continued."""
    folder = FOLDER / name
    if not (folder / 'training.json').exists():
        model, settings = RUNS[name]
        if name == 'photos':
            write_crops(FOLDER / 'crops')
        vt.train(model, work_dir=str(folder), resume=True, **settings)
    return vt.open_run(folder)


def scenes(count: int) -> list[dict]:
    """Return test scenes, with images in BGR."""
    return [*vt.DigitScenes('test', num_scenes=count)]


@torch.no_grad()
def segment(model: BaseModel, image: np.ndarray) -> np.ndarray:
    """Return the labels of an image in BGR, at its own size."""
    inputs = model.data_preprocessor(dict(inputs=[torch.from_numpy(image.copy()).permute(2, 0, 1)]))['inputs']
    size = tuple(inputs.shape[2:])
    return model.inference(inputs, [dict(img_shape=size, ori_shape=size)])[0].argmax(dim=0).cpu().numpy()


def colour(labels: np.ndarray) -> np.ndarray:
    """Return a map of labels in the colours of their classes."""
    return np.array(vt.DigitScenes.METAINFO['palette'], np.uint8)[labels]


def draw_segments() -> Figure:
    """Scenes, their masks and what the segmentor predicts."""
    chosen = [scenes(8)[index] for index in (2, 5)]
    model = trained('scenes').model()
    rows = [
        [scene['img'][..., ::-1], colour(scene['gt_seg_map']), colour(segment(model, scene['img']))] for scene in chosen
    ]
    figure = new_figure(5)
    image_grid(figure, rows, ['image', 'mask', 'prediction'], ['', ''])
    meta = vt.DigitScenes.METAINFO
    colours = [Patch(color=np.divide(rgb, 255), label=name) for name, rgb in zip(meta['classes'], meta['palette'])]
    figure.legend(handles=colours, loc='outside right center', title='class')
    return figure


def draw_seams() -> Figure:
    """A part of a large image, segmented by windows with and without overlap."""
    tiles = [(scene['img'], colour(scene['gt_seg_map'])) for scene in scenes(12)]
    image, mask = (np.vstack([np.hstack(each[row : row + 4]) for row in (0, 4, 8)])[PART] for each in zip(*tiles))
    shown, model = {'image': image[..., ::-1], 'mask': mask}, trained('scenes').model()
    for stride, name in ((128, 'no overlap: stride=128'), (64, 'overlap: stride=64')):
        model.test_cfg = ConfigDict(mode='slide', crop_size=SCENE, stride=(stride, stride))
        shown[name] = colour(segment(model, image))
    figure = new_figure(2.4)
    for axes, (name, pixels) in zip(figure.subplots(1, len(shown)), shown.items()):
        show_image(axes, pixels, name)
        for line in axes.axvline, axes.axhline:
            line(127.5, color='white', linewidth=0.8, linestyle=':')  # the edge of windows
    return figure


def draw_heat_maps() -> Figure:
    """Which pixels of a photograph contribute to each of two classes, by several methods."""
    model = trained('photos').model()
    image = cv2.resize(np.delete(photographs(), CUT, axis=1), (256, 128), interpolation=cv2.INTER_AREA)
    pixels = torch.from_numpy(image).permute(2, 0, 1)
    inputs = model.data_preprocessor(dict(inputs=[pixels.flip(0)]))['inputs']
    rows = []
    for target in ('pagoda', 'flower'):
        maps = torch.stack([HeatMapper(model, name)(inputs, target)[0] for name in METHODS])
        rows.append([image, *glow(pixels / 255, times_uniform(maps))])
    figure = new_figure(2.5)
    image_grid(figure, rows, ['image', *METHODS], ['target:\npagoda', 'target:\nflower'])
    return figure


def draw_curve() -> Figure:
    """The accuracy of each epoch, the best one, and where the run was stopped."""
    rows = pd.read_csv(trained('digits').folder / 'results.csv')
    best = rows.loc[rows['accuracy/top1'].idxmax()]
    figure = new_figure(3.2)
    axes = figure.subplots()
    axes.axvspan(best['epoch'], best['epoch'] + PATIENCE, color=GREY, alpha=0.25, linewidth=0)
    axes.plot(rows['epoch'], rows['accuracy/top1'], '.-', color=BLUE)
    axes.plot(best['epoch'], best['accuracy/top1'], '*', color=ORANGE, markersize=16)
    text = f'best epoch, {best["epoch"]:.0f}:\nits checkpoint is kept'
    axes.annotate(text, (best['epoch'], best['accuracy/top1']), (best['epoch'] - 11, 72), **ARROW)
    text = f'{PATIENCE} epochs without a better score:\nthe run stops'
    axes.annotate(text, (best['epoch'] + PATIENCE / 2, 90), (best['epoch'] - 2, 60), **ARROW)
    axes.set(xlabel='epoch', ylabel='top-1 accuracy, %', xlim=(0, 40), ylim=(50, 102))
    axes.grid(alpha=0.3)
    return figure


def draw_predictions() -> Figure:
    """Test images, each with its three most probable classes."""
    digits = [*vt.Digits('test')]
    images = [cv2.resize(digit['img'], (96, 96)) for digit in digits]
    found = apis.inferencer_of(trained('digits').model())(images, batch_size=32)
    certain = np.array([result['pred_score'] for result in found])
    chosen = [0, 1, *certain.argsort()[:3]]
    figure = new_figure(3)
    photos, charts = figure.subplots(2, len(chosen), height_ratios=(1.3, 1))
    for image, chart, index in zip(photos, charts, chosen):
        scores = np.array(found[index]['pred_scores'])
        top = scores.argsort()[:-4:-1]
        show_image(image, images[index], f'label {digits[index]["gt_label"]}')
        first = BLUE if top[0] == digits[index]['gt_label'] else ORANGE
        bars = chart.barh([*map(str, top)], scores[top], color=[first, GREY, GREY])
        chart.bar_label(bars, [f'{100 * each:.0f} %' for each in scores[top]], padding=3)
        chart.set(xlim=(0, 1.5), xticks=[])
        chart.spines['bottom'].set_visible(False)
        chart.tick_params(length=0)
        chart.invert_yaxis()
    return figure


def draw_tokens() -> Figure:
    """Where each token of the finest level looks."""
    model, chosen = trained('scenes').model(), [scenes(8)[index] for index in (2, 5)]
    made = apis.extract_tokens(model, [scene['img'] for scene in chosen]).attention['neck.tokenizers.0'].mean(1)
    rows = []
    for scene, maps in zip(chosen, made):
        image = torch.from_numpy(scene['img'][..., ::-1].transpose(2, 0, 1) / 255).float()
        rows.append([image.movedim(0, -1).numpy(), *glow(image, times_uniform(maps))])
    figure = new_figure(2.3)
    image_grid(figure, rows, ['image', *(f'token {number}' for number in range(1, made.shape[1] + 1))], ['', ''])
    return figure


def draw_curves() -> Image.Image:
    """The curves that a run itself draws."""
    return Image.open(trained('digits').folder / 'curves.png')


FIGURES = {
    'segments.jpg': draw_segments,
    'seams.png': draw_seams,
    'heat-maps.jpg': draw_heat_maps,
    'early-stopping.png': draw_curve,
    'predictions.png': draw_predictions,
    'tokens.jpg': draw_tokens,
    'curves.png': draw_curves,
}
