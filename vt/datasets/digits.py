"""Handwritten digits of scikit-learn."""

from collections.abc import Sequence

import numpy as np
from mmpretrain.datasets import BaseDataset

from vt.errors import UserError
from vt.registry import DATASETS

MAX_INK = 16  # maximum value in scikit-learn's images
PER_HAND = 138  # approximate number of images per writer


def load_handwriting(split: str, split_seed: int = 0, other_hands: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Load images ``(n, 8, 8)``, uint8 from 0 to 255, and labels ``(n,)`` of one split, in a fixed order.

    Args:
        split: ``'train'`` or ``'test'``.
        split_seed: seed of the partition; a fifth of each class is test data.
        other_hands: use different writers for train and test instead. The file is the test half of the UCI digits: 13
            writers in order, with about 138 images each. The last two are the test split. About one writer's images
            before them are left out, since the borders between writers are not marked.

    Raises:
        UserError: ``split`` has another value.
    """
    from sklearn.datasets import load_digits  # slow imports
    from sklearn.model_selection import train_test_split

    if split not in ('train', 'test'):
        raise UserError(f"split={split!r} must be 'train' or 'test'")
    digits = load_digits()
    if other_hands:
        chosen = slice(0, -3 * PER_HAND) if split == 'train' else slice(-2 * PER_HAND, None)
    else:
        indices, labels = np.arange(len(digits.target)), digits.target
        parts = train_test_split(indices, test_size=0.2, stratify=labels, random_state=split_seed)
        chosen = np.sort(parts[split == 'test'])
    return (digits.images[chosen] * (255 / MAX_INK)).round().astype(np.uint8), digits.target[chosen]


def load_ink(split: str, **options) -> list[np.ndarray]:
    """Return the images ``(n, 8, 8)`` of each digit, from 0 to 1; ``options`` are those of :func:`load_handwriting`."""
    images, labels = load_handwriting(split, **options)
    ink = images.astype(np.float32) / 255
    return [ink[labels == digit] for digit in range(10)]


@DATASETS.register_module()
class Digits(BaseDataset):
    """The 1,797 handwritten 8x8 digits of scikit-learn's ``load_digits`` (UCI optical recognition of digits).

    A fifth of each class, chosen with a fixed seed, is test data: 1,437 training and 360 test images. Samples are in
    memory: ``img`` (8, 8, 3) uint8 from 0 to 255 and ``gt_label``, so a pipeline starts with ``Resize``.

    Args:
        split: ``'train'`` or ``'test'``.
        split_seed: seed of the partition.
        digits: digits to keep; all by default. Classes and labels do not change.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`, such as ``pipeline`` and ``indices``.

    Raises:
        UserError: ``split`` has another value, or ``digits`` is empty or has others than 0 to 9.
    """

    METAINFO = dict(classes=tuple('0123456789'))

    def __init__(
        self, split: str = 'train', split_seed: int = 0, digits: Sequence[int] = tuple(range(10)), **kwargs
    ) -> None:
        self.split, self.split_seed, self.digits = split, split_seed, tuple(digits)
        if not self.digits or not set(self.digits) <= set(range(10)):
            raise UserError(f'Digits: digits={self.digits} must be a non-empty subset of 0 to 9')
        super().__init__(ann_file='', test_mode=split == 'test', **dict(serialize_data=False) | kwargs)

    def load_data_list(self) -> list[dict]:
        """Return one dict per image, in a fixed order."""
        images, labels = load_handwriting(self.split, self.split_seed)
        images = np.repeat(images[..., None], 3, axis=-1)  # n, 8, 8, 3
        samples = [dict(img=image, gt_label=int(label)) for image, label in zip(images, labels)]
        return [sample for sample in samples if sample['gt_label'] in self.digits]
