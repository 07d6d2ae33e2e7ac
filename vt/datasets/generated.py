"""What the generated data sets share: images that are made when they are asked for, from their number alone.

Sizes are in pixels, colours in 0 to 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mmpretrain.datasets import BaseDataset

from vt.errors import UserError

SPLITS = dict(train=0, test=1, val=2)
Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels; the last two are one past the object


@dataclass(frozen=True)
class Drawn:
    """An image and what stands in it.

    Attributes:
        image: ``(height, width)`` or ``(height, width, 3)`` in 0 to 1.
        label: its class.
        related: the objects that have to be compared.
        others: the other objects.
    """

    image: np.ndarray
    label: int
    related: Sequence[Box]
    others: Sequence[Box] = ()


def square(left: float, top: float, side: float) -> Box:
    """The box of a square object."""
    return int(left), int(top), int(left) + int(side), int(top) + int(side)


def to_bytes(image: np.ndarray) -> np.ndarray:
    """An image in 0 to 1 as uint8."""
    return (image.clip(0, 1) * 255).round().astype(np.uint8)


class Seeded:
    """A data set whose samples are made from ``seed``, ``split`` and their index: alike in every epoch and process."""

    split: str
    seed: int

    def stream(self, index: int, *purpose: int) -> np.random.Generator:
        """The random numbers of a sample; those of another purpose are independent of them."""
        return np.random.default_rng((self.seed, SPLITS[self.split], index, *purpose))

    def extra_repr(self) -> list[str]:
        """The split and the seed."""
        return [f'Split: \t{self.split}, seed {self.seed}']


class GeneratedImages(Seeded, BaseDataset):
    """Images of a published procedure, each made from ``seed``, the split and its index alone.

    The splits share an image only by chance, which a subclass of few images rules out. Samples hold ``img`` (height,
    width, 3) uint8, ``gt_label``, and ``related`` and ``others``, boxes of the objects ``(left, top, right, bottom)``
    in pixels; a pipeline needs no loading. Where the procedure begins with the class, classes take turns and are
    equally frequent. An image is kept once it is made, a byte a pixel and colour.

    Args:
        classes: names of the classes.
        split: ``'train'``, ``'val'``, by which a recipe is chosen, or ``'test'``.
        num_images: length of the data set.
        seed: seed of the images.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`, such as ``pipeline`` and ``indices``.

    Raises:
        UserError: ``split`` has another value.
    """

    def __init__(
        self, classes: Sequence[str], split: str = 'train', num_images: int = 8192, seed: int = 0, **kwargs
    ) -> None:
        if split not in SPLITS:
            raise UserError(f'split={split!r} is none of {", ".join(SPLITS)}')
        self.split, self.num_images, self.seed = split, num_images, seed
        self.num_classes = len(classes)
        self.made: dict[int, tuple] = {}
        super().__init__(ann_file='', metainfo=dict(classes=tuple(classes)), test_mode=split != 'train', **kwargs)

    def draw(self, rng: np.random.Generator, label: int) -> Drawn:
        """An image of a class; a subclass says how."""
        raise NotImplementedError

    def label_of(self, index: int) -> int:
        """The class of an image."""
        return index % self.num_classes

    def load_data_list(self) -> list[dict]:
        """One dict an image, with its label."""
        return [dict(index=index, gt_label=self.label_of(index)) for index in range(self.num_images)]

    def get_data_info(self, idx: int) -> dict[str, Any]:
        """The image of an index, its label and the boxes of its objects."""
        info = super().get_data_info(idx)
        index = info['index']
        if index not in self.made:
            drawn = self.draw(self.stream(index), info['gt_label'])
            self.made[index] = to_bytes(drawn.image), tuple(drawn.related), tuple(drawn.others)
        image, related, others = self.made[index]
        image = image.copy() if image.ndim == 3 else np.repeat(image[..., None], 3, axis=-1)
        return info | dict(img=image, related=list(related), others=list(others))
