"""What the tasks of relations share: images that are made when they are asked for, from their number alone."""

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


class GeneratedImages(BaseDataset):
    """Images of a published procedure, each made from ``seed``, the split and its index alone.

    So an image is the same in every epoch, process and run, and the splits share one only by chance, a chance that a
    subclass of few images rules out.
    Samples hold ``img`` (height, width, 3) uint8, ``gt_label``, and ``related`` and ``others``, boxes of the objects
    ``(left, top, right, bottom)`` in pixels; a pipeline needs no loading. Classes take turns, so that they are as
    frequent as each other, where the procedure begins with the class. Making one takes up to some milliseconds, so each
    is kept once it is made, a byte a pixel and colour.

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
            image = (drawn.image.clip(0, 1) * 255).round().astype(np.uint8)
            self.made[index] = image, tuple(drawn.related), tuple(drawn.others)
        image, related, others = self.made[index]
        image = image.copy() if image.ndim == 3 else np.repeat(image[..., None], 3, axis=-1)
        return info | dict(img=image, related=list(related), others=list(others))

    def stream(self, index: int) -> np.random.Generator:
        """The random numbers of an image."""
        return np.random.default_rng((self.seed, SPLITS[self.split], index))

    def extra_repr(self) -> list[str]:
        return [f'Split: \t{self.split}, seed {self.seed}']
