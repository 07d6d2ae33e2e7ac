"""A data set without splits: a fraction of each class is held out for validation."""

import functools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import blake2b
from typing import Any

import joblib
import numpy as np
from mmengine.logging import print_log
from mmpretrain.datasets import KFoldDataset
from PIL import Image
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from vt.errors import UserError
from vt.registry import DATASETS

MOST_COMPARED = 20_000  # images that are compared, which takes a minute for photographs
SIDE = 16  # pixels of the small gray copies that are compared
FLAT = 2.0  # standard deviation of their values, of 255, below which a copy shows nothing
# Correlation of the small copies of images that look the same. In other sizes, qualities and light, or with a margin
# cut off, two photographs kept at least 0.996 and four figures 0.954; different ones had at most 0.51.
ALIKE = 0.98


@DATASETS.register_module()
class HeldOut(KFoldDataset):
    """One of two parts of a data set: what trains, or a fraction of each class that is held out for validation.

    The choice depends on the names of the files, so a new image changes it little. Images of a class that look the
    same, such as copies of another size or format, are in one part, lest the score be of images that were trained on.

    Args:
        dataset: config of the data set.
        val_fraction: fraction of each class that is held out, at least one image if there are two that differ.
        test_mode: whether this is the held-out part.
        seed: seed of the choice.

    Raises:
        UserError: no image can be held out.
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
        labels = (info.get('gt_label') for info in infos)
        classes = tuple(label if isinstance(label, (int, np.integer)) else None for label in labels)
        held_out = choose_held_out(files, classes, self.val_fraction, self.seed)
        if not held_out:
            raise UserError(f'val_fraction={self.val_fraction}: there are no two images of a class that differ')
        self._ori_indices = [index for index in range(len(infos)) if (index in held_out) == self.test_mode]
        self.dataset = self.dataset.get_subset(self._ori_indices)
        self._metainfo = self.dataset.metainfo
        self._fully_initialized = True
        if not self.test_mode:
            words = '' if _can_compare(files) else '; images are not compared, copies may be in both'
            numbers = f'{len(self._ori_indices):,} samples train, {len(held_out):,} validate'
            print_log(f'val_fraction={self.val_fraction}: {numbers}{words}', logger='current')

    def __repr__(self) -> str:
        part = 'the held-out part' if self.test_mode else 'the training part'
        return f'HeldOut(val_fraction={self.val_fraction}), {part} of {self.dataset!r}'


@functools.lru_cache(maxsize=2)  # both parts ask for the same
def choose_held_out(files: tuple[str, ...], classes: tuple[Any, ...], fraction: float, seed: int) -> frozenset[int]:
    """Choose samples of each class by the names of their files; those that look the same together.

    Args:
        files: path of each sample; empty for data in memory.
        classes: class of each sample.
        fraction: fraction of the samples of a class.
        seed: seed of the choice.

    Returns:
        Indices of the samples.
    """
    looks = describe_images(files) if _can_compare(files) else None
    top = os.path.commonpath(files) if files and all(files) else ''
    names = [f'{seed} {os.path.relpath(file, top) if top else index}' for index, file in enumerate(files)]
    order = [blake2b(name.encode()).digest() for name in names]
    members: dict[Any, list[int]] = {}
    for index, name in enumerate(classes):
        members.setdefault(name, []).append(index)
    chosen: set[int] = set()
    for indices in members.values():
        groups = [[index] for index in indices] if looks is None else [*_alike(indices, looks)]
        groups.sort(key=lambda group: min(order[index] for index in group))
        others = groups[:-1]  # one group always trains
        left = max(round(fraction * len(indices)), min(map(len, others), default=0))
        for group in others:
            if len(group) <= left:
                chosen.update(group)
                left -= len(group)
    return frozenset(chosen)


def _can_compare(files: Sequence[str]) -> bool:
    return len(files) <= MOST_COMPARED and all(os.path.isfile(file) for file in files)


def describe_images(files: Sequence[str]) -> np.ndarray:
    """Return a small gray copy of each image, of mean 0 and norm 1, ``(files, SIDE * SIDE)``; zeros if it is flat.

    What cannot be read as an image is flat, too.
    """
    with ThreadPoolExecutor(joblib.cpu_count()) as pool:
        return np.stack([*pool.map(_describe, files)]) if files else np.zeros((0, SIDE * SIDE), np.float32)


def _describe(file: str) -> np.ndarray:
    values = np.zeros(SIDE * SIDE, np.float32)
    with suppress(Exception), Image.open(file) as image:
        image.draft('L', (4 * SIDE, 4 * SIDE))  # a JPEG is decoded at a fraction of its size
        if image.mode in ('RGBA', 'LA', 'PA') or 'transparency' in image.info:
            image = image.convert('RGBA')
            image = Image.alpha_composite(Image.new('RGBA', image.size, 'white'), image)
        pixels = np.asarray(image.convert('L').resize((SIDE, SIDE), Image.Resampling.BOX), np.float32).ravel()
        if pixels.std() >= FLAT:
            values = pixels - pixels.mean()
            values /= np.linalg.norm(values)
    return values


def _alike(indices: Sequence[int], looks: np.ndarray) -> Iterator[list[int]]:
    """Yield the groups of samples that are connected by looking the same."""
    own = looks[np.asarray(indices)]
    pairs = []
    for start in range(0, len(own), 1000):
        rows, columns = np.nonzero(own[start : start + 1000] @ own.T >= ALIKE)
        pairs.append((rows + start, columns))
    rows, columns = (np.concatenate(each) for each in zip(*pairs))
    graph = coo_array((np.ones(len(rows), bool), (rows, columns)), (len(own), len(own)))
    number, group_of = connected_components(graph, directed=False)
    groups: list[list[int]] = [[] for _ in range(number)]
    for index, group in zip(indices, group_of):
        groups[group].append(index)
    yield from groups
