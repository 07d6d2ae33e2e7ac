"""Base class of the tasks, whose images are drawn on access from the seed, the split and their index.

Sizes are in pixels, colours from 0 to 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mmpretrain.datasets import BaseDataset

from vt.datasets.procedural_dataset import SPLIT_SEEDS, Seeded, to_bytes
from vt.errors import UserError

Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels; right and bottom are exclusive


@dataclass(frozen=True)
class Drawn:
    """An image and its objects.

    Attributes:
        image: image ``(height, width)`` or ``(height, width, 3)``, from 0 to 1.
        label: its class.
        related: boxes of the objects that must be compared.
        others: boxes of the other objects.
    """

    image: np.ndarray
    label: int
    related: Sequence[Box]
    others: Sequence[Box] = ()


def square(left: float, top: float, side: float) -> Box:
    """Return the box of a square object."""
    return int(left), int(top), int(left) + int(side), int(top) + int(side)


class GeneratedImages(Seeded, BaseDataset):
    """Base of data sets that draw images by a published procedure from ``seed``, the split and the index.

    Samples contain ``img`` (height, width, 3) uint8, ``gt_label``, and ``related`` and ``others``: boxes of objects
    ``(left, top, right, bottom)`` in pixels; a pipeline needs no loading. Classes alternate and are equally frequent,
    unless the procedure determines the class. Images are cached. Splits share an image only by chance; data sets with
    few different images exclude that.

    Args:
        classes: class names.
        split: ``'train'``, ``'val'`` (for choosing a recipe) or ``'test'``.
        num_images: number of images.
        seed: seed of the images.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`, such as ``pipeline`` and ``indices``.

    Raises:
        UserError: ``split`` has another value.
    """

    def __init__(
        self, classes: Sequence[str], split: str = 'train', num_images: int = 8192, seed: int = 0, **kwargs
    ) -> None:
        if split not in SPLIT_SEEDS:
            raise UserError(f'split={split!r} must be one of {", ".join(SPLIT_SEEDS)}')
        self.split, self.num_images, self.seed = split, num_images, seed
        self.num_classes = len(classes)
        self.made: dict[int, tuple] = {}
        super().__init__(ann_file='', metainfo=dict(classes=tuple(classes)), test_mode=split != 'train', **kwargs)

    def draw(self, rng: np.random.Generator, label: int) -> Drawn:
        """Draw an image of a class; implemented by subclasses."""
        raise NotImplementedError

    def label_of(self, index: int) -> int:
        """Return the class of an image."""
        return index % self.num_classes

    def load_data_list(self) -> list[dict]:
        """Return one dict per image with its label."""
        return [dict(index=index, gt_label=self.label_of(index)) for index in range(self.num_images)]

    def get_data_info(self, idx: int) -> dict[str, Any]:
        """Return image, label and boxes of an index."""
        info = super().get_data_info(idx)
        index = info['index']
        if index not in self.made:
            drawn = self.draw(self.stream(index), info['gt_label'])
            self.made[index] = to_bytes(drawn.image), tuple(drawn.related), tuple(drawn.others)
        image, related, others = self.made[index]
        image = image.copy() if image.ndim == 3 else np.repeat(image[..., None], 3, axis=-1)
        return info | dict(img=image, related=list(related), others=list(others))
