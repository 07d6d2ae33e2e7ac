"""Four handwritten digits of which two are alike: classification that has to compare places.

Sizes are in pixels, colours in 0 to 1.
"""

import cv2
import numpy as np
from mmpretrain.datasets import BaseDataset

from vt.registry import DATASETS

from .digits import load_handwriting

SIZE = 32  # of an image, both ways; each quarter holds one digit
DIGIT_SIZES = (11, 15)  # of a digit's cell
NOISE = 0.05  # standard deviation, each pixel on its own
SPLITS = dict(train=0, test=1)


@DATASETS.register_module()
class TwinDigits(BaseDataset):
    """Which digit stands there twice? One in each quarter of a 32x32 image; two are alike, the others differ.

    The two are written by different hands, so their pixels don't match: all four have to be read, and far places
    compared. Place, size and contrast are random. An image is made when it is asked for, from ``seed``, the split and
    its index alone, so it is the same in every epoch, process and run; train and test are written by disjoint hands
    (the partition of :class:`vt.Digits`). Samples hold ``img`` (32, 32, 3) uint8 and ``gt_label``, so a pipeline needs
    no loading.

    Args:
        split: ``'train'`` or ``'test'``.
        num_images: length of the data set.
        seed: seed of the images.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`, such as ``pipeline`` and ``indices``.

    Raises:
        UserError: ``split`` has another value.
    """

    METAINFO = dict(classes=tuple('0123456789'))

    def __init__(self, split: str = 'train', num_images: int = 8192, seed: int = 0, **kwargs) -> None:
        images, labels = load_handwriting(split)
        ink = images.astype(np.float32) / 255  # n, 8, 8
        self.ink_by_digit = [ink[labels == digit] for digit in range(10)]
        self.split = split
        self.num_images = num_images
        self.seed = seed
        super().__init__(ann_file='', test_mode=split == 'test', **kwargs)

    def load_data_list(self) -> list[dict]:
        """One dict an image, with its label: the first of the digits drawn is the one that stands there twice."""
        return [dict(index=index, gt_label=int(self._draw(index)[1][0])) for index in range(self.num_images)]

    def get_data_info(self, idx: int) -> dict:
        """The image of an index and its label."""
        info = super().get_data_info(idx)
        rng, digits = self._draw(info['index'])
        return info | dict(img=self.compose(rng, digits))

    def compose(self, rng: np.random.Generator, digits: np.ndarray) -> np.ndarray:
        """Image ``(32, 32, 3)`` uint8 of the twin, the twin and two others, in shuffled quarters."""
        twins = rng.choice(len(self.ink_by_digit[digits[0]]), size=2, replace=False)
        others = [rng.integers(len(self.ink_by_digit[digit])) for digit in digits[1:]]
        written = [self.ink_by_digit[digits[0]][index] for index in twins]
        written += [self.ink_by_digit[digit][index] for digit, index in zip(digits[1:], others)]
        image = rng.uniform(0.1, 0.4) + NOISE * rng.standard_normal((SIZE, SIZE), np.float32)
        half = SIZE // 2
        for quarter, ink in zip(rng.permutation(4), written):
            size = rng.integers(*DIGIT_SIZES, endpoint=True)
            top, left = rng.integers(half - size, size=2, endpoint=True) + half * np.array(divmod(quarter, 2))
            ink = cv2.resize(ink, (size, size), interpolation=cv2.INTER_CUBIC).clip(0, 1)
            image[top : top + size, left : left + size] += ink * rng.uniform(0.3, 0.6)
        return np.repeat((image.clip(0, 1) * 255).round().astype(np.uint8)[..., None], 3, axis=-1)

    def _draw(self, index: int) -> tuple[np.random.Generator, np.ndarray]:
        """The generator of an image and its three digits, the twin first."""
        rng = np.random.default_rng((self.seed, SPLITS[self.split], index))
        return rng, rng.choice(10, size=3, replace=False)

    def extra_repr(self) -> list[str]:
        return [f'Split: \t{self.split}, seed {self.seed}']
