"""A data set without splits: a fraction of each class is held out for validation."""

import functools
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import joblib
import numpy as np
from mmengine.logging import print_log
from mmpretrain.datasets import KFoldDataset
from PIL import Image

from vt.registry import DATASETS

MOST_COMPARED = 20_000  # images that are compared, which takes a minute for photographs
SIDE = 16  # pixels: an image is described by SIDE x SIDE differences of neighbours
# Of these 256 signs may differ between images that look the same. Copies of six images in other sizes, qualities and
# light, or with a margin cut off, differed in 1 to 19 (one in 45), the images among each other in 96 to 144.
NEAR = 16


@DATASETS.register_module()
class HeldOut(KFoldDataset):
    """One of two parts of a data set: what trains, or a fraction of each class that is held out for validation.

    The parts are the same in every run with the same data. Images that look the same, such as copies of another size
    or format, are in one part, lest the score be of images that were trained on.

    Args:
        dataset: config of the data set.
        val_fraction: fraction of each class that is held out, at least one image if there are two that differ.
        test_mode: whether this is the held-out part.
        seed: seed of the choice.
    """

    def __init__(self, dataset: dict, val_fraction: float, test_mode: bool = False, seed: int = 0) -> None:
        self.val_fraction = val_fraction
        super().__init__(dataset, test_mode=test_mode, seed=seed)

    def full_init(self) -> None:
        """Load the annotations, compare the images, and keep the samples of this part."""
        if self._fully_initialized:
            return
        self.dataset.full_init()
        infos = [self.dataset.get_data_info(index) for index in range(len(self.dataset))]
        files = tuple(str(info.get('img_path', '')) for info in infos)
        looks = describe_images(files) if len(files) <= MOST_COMPARED else None
        held_out = choose_held_out([str(info.get('gt_label')) for info in infos], looks, self.val_fraction, self.seed)
        self._ori_indices = [index for index in range(len(infos)) if (index in held_out) == self.test_mode]
        self.dataset = self.dataset.get_subset(self._ori_indices)
        self._metainfo = self.dataset.metainfo
        self._fully_initialized = True
        if not self.test_mode:
            words = '' if looks is not None else f'; more than {MOST_COMPARED:,} images are not compared for copies'
            numbers = f'{len(self._ori_indices):,} samples train, {len(held_out):,} validate'
            print_log(f'val_fraction={self.val_fraction}: {numbers}{words}', logger='current')


@functools.lru_cache(maxsize=1)  # both parts ask for the same
def describe_images(files: tuple[str, ...]) -> np.ndarray:
    """Return which of neighbouring pixels is brighter in a small gray copy of each image, ``(files, 256)``, bool.

    What cannot be read as an image, such as a video, looks like nothing else.
    """
    with ThreadPoolExecutor(joblib.cpu_count()) as pool:
        return np.stack([*pool.map(_describe, files)]) if files else np.zeros((0, SIDE * SIDE), bool)


def _describe(file: str) -> np.ndarray:
    with suppress(Exception), Image.open(file) as image:
        image.draft('L', (4 * SIDE, 4 * SIDE))  # a JPEG is decoded at a fraction of its size
        pixels = np.asarray(image.convert('L').resize((SIDE + 1, SIDE), Image.Resampling.BOX), np.int16)
        return (np.diff(pixels) > 0).ravel()
    return np.random.default_rng([*file.encode()]).random(SIDE * SIDE) < 0.5


def choose_held_out(classes: Sequence[Hashable], looks: np.ndarray | None, fraction: float, seed: int) -> set[int]:
    """Choose samples of each class at random; those that look the same together.

    Args:
        classes: class of each sample.
        looks: as from :func:`describe_images`; None to compare nothing.
        fraction: fraction of the samples of a class.
        seed: seed of the choice.

    Returns:
        Indices of the samples.
    """
    generator = np.random.default_rng(seed)
    members: dict[Any, list[int]] = {}
    for index, name in enumerate(classes):
        members.setdefault(name, []).append(index)
    chosen: set[int] = set()
    for indices in members.values():
        groups = [[index] for index in indices] if looks is None else [*_alike(indices, looks)]
        _, *others = (groups[place] for place in generator.permutation(len(groups)))  # one group always trains
        left = max(round(fraction * len(indices)), min(map(len, others), default=0))
        for group in others:
            if len(group) <= left:
                chosen.update(group)
                left -= len(group)
    return chosen


def _alike(indices: Sequence[int], looks: np.ndarray) -> Iterator[list[int]]:
    """Yield groups of samples that look like the first of their group."""
    left = np.asarray(indices)
    while len(left):
        same = (looks[left] != looks[left[0]]).sum(axis=1) <= NEAR
        yield left[same].tolist()
        left = left[~same]
