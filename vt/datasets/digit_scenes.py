"""Scenes composed of handwritten digits, for segmentation without a download.

Sizes are in pixels, colours from 0 to 1 in OpenCV's channel order.
"""

import cv2
import numpy as np
from mmseg.datasets import BaseSegDataset

from vt.registry import DATASETS

from .digits import load_handwriting
from .procedural_dataset import Seeded, to_bytes

SIZE = 128  # height and width of a scene
DIGIT_SIZES = (40, 56)  # range of the side of a digit's cell
NUM_DIGITS = (3, 4)
FAR = SIZE / 2  # minimum distance between the centres of a pair
NOISE = np.float32(0.02)  # standard deviation of independent noise per pixel
LAYOUTS = 64  # layouts drawn at a time until one fits
Cell = tuple[int, int, int]  # left, top, size


@DATASETS.register_module()
class DigitScenes(Seeded, BaseSegDataset):
    """Scenes of three or four handwritten digits at random positions, scales and contrasts on a 128x128 texture.

    A scene is generated on access from ``seed``, the split and its index, so it is the same in every epoch, process and
    run. Train and test scenes use different handwriting (the partition of :class:`vt.Digits`). The segment of a digit
    is the convex hull of its ink; its class is the digit, everything else is background.

    Samples contain ``img`` (128, 128, 3) uint8 and ``gt_seg_map`` (128, 128) uint8, so a pipeline needs no loading.

    Args:
        split: ``'train'`` or ``'test'``.
        num_scenes: number of scenes.
        seed: seed of the scenes.
        **kwargs: other options of :class:`mmseg.datasets.BaseSegDataset`, such as ``pipeline`` and ``indices``.

    Raises:
        UserError: ``split`` has another value.
    """

    METAINFO = dict(
        classes=('background', *'0123456789'),
        palette=[
            [0, 0, 0], [230, 25, 75], [60, 180, 75], [255, 225, 25], [0, 130, 200], [245, 130, 48],
            [145, 30, 180], [70, 240, 240], [240, 50, 230], [210, 245, 60], [170, 110, 40],
        ],
    )  # fmt: skip

    def __init__(self, split: str = 'train', num_scenes: int = 8192, seed: int = 0, **kwargs) -> None:
        images, self.digits = load_handwriting(split)
        self.ink = images.astype(np.float32) / 255  # n, 8, 8
        self.split, self.num_scenes, self.seed = split, num_scenes, seed
        super().__init__(test_mode=split == 'test', **dict(serialize_data=False) | kwargs)

    def load_data_list(self) -> list[dict]:
        """Return one dict per scene; ``img_path`` is only a name."""
        return [
            dict(scene=scene, img_path=f'{self.split}_{scene:06d}.png', reduce_zero_label=False)
            for scene in range(self.num_scenes)
        ]

    def get_data_info(self, idx: int) -> dict:
        """Return image and labels of the scene of an index."""
        info = super().get_data_info(idx)
        image, labels = self.compose(self.stream(info['scene']))
        info.update(img=image, img_shape=image.shape[:2], ori_shape=image.shape[:2])
        info.update(gt_seg_map=labels, seg_fields=['gt_seg_map'])
        return info

    def compose(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw a scene: image ``(128, 128, 3)`` and labels ``(128, 128)``, both uint8."""
        written, classes, cells = self.choose_digits(rng)
        colour = rng.uniform(0.3, 0.7, 3).astype(np.float32)
        image = _texture(rng, colour)
        labels = np.zeros((SIZE, SIZE), np.uint8)
        for index, number, (left, top, size) in zip(written, classes, cells):
            cell = slice(top, top + size), slice(left, left + size)
            ink = cv2.resize(self.ink[index], (size, size), interpolation=cv2.INTER_CUBIC).clip(0, 1)[..., None]
            contrast = rng.choice((-1, 1)) * rng.uniform(0.35, 0.65) * rng.uniform(0.7, 1.3, 3)
            image[cell] += ink * (colour + contrast.astype(np.float32) - image[cell])
            hull = cv2.convexHull(cv2.findNonZero((ink > 0.5).astype(np.uint8)))
            cv2.fillConvexPoly(labels[cell], hull, int(number))
        image += NOISE * rng.standard_normal(image.shape, np.float32)
        return to_bytes(image), labels

    def choose_digits(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, list[Cell]]:
        """Choose the digits of a scene: indices of the handwriting, classes and cells."""
        written = rng.integers(len(self.ink), size=rng.integers(*NUM_DIGITS, endpoint=True))
        return written, self.digits[written] + 1, place_cells(rng, len(written))


def place_cells(rng: np.random.Generator, number: int, num_far_pairs: int = 0) -> list[Cell]:
    """Draw cells that do not overlap; the first ``num_far_pairs`` pairs are at least ``FAR`` apart."""
    while True:
        sizes = rng.integers(*DIGIT_SIZES, size=(LAYOUTS, number), endpoint=True)
        corners = rng.integers(0, SIZE - sizes, size=(2, LAYOUTS, number), endpoint=True)  # lefts and tops
        centres = corners + sizes / 2
        apart = np.abs(centres[..., :, None] - centres[..., None, :])  # 2, LAYOUTS, number, number
        touch = (apart < (sizes[:, :, None] + sizes[:, None]) / 2).all(axis=0) & ~np.eye(number, dtype=bool)
        first, second = np.arange(2 * num_far_pairs).reshape(-1, 2).T
        far = np.hypot(*apart[..., first, second]) >= FAR  # LAYOUTS, num_far_pairs
        good = ~touch.any(axis=(1, 2)) & far.all(axis=1)
        if good.any():
            chosen = good.argmax()
            return list(zip(*corners[:, chosen].tolist(), sizes[chosen].tolist()))


def _texture(rng: np.random.Generator, colour: np.ndarray) -> np.ndarray:
    """Draw a canvas ``(128, 128, 3)`` of a colour with smooth spots of two random sizes."""
    canvas = np.tile(colour, (SIZE, SIZE, 1))
    for height, width in rng.integers(4, 32, size=(2, 2), endpoint=True):
        spots = rng.standard_normal((height, width, 3), np.float32) * np.float32(rng.uniform(0.02, 0.07))
        canvas += cv2.resize(spots, (SIZE, SIZE), interpolation=cv2.INTER_CUBIC)
    return canvas
