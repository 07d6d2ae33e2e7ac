"""A data set without splits: a fraction of each class is held out for validation."""

import functools
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from mmengine.registry import DATASETS as ALL_DATASETS
from PIL import Image
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from vt.errors import UserError
from vt.registry import DATASETS

MOST_COMPARED = 20_000  # images that are compared, which takes up to two minutes
SIDE = 32  # pixels of the small gray copies that are compared
FLAT = 0.5  # standard deviation of their values, of 255, below which a copy shows nothing
# Correlation of copies of SIDE / 2 pixels of images that look the same. In other sizes, qualities and light, or with a
# margin cut off, two photographs kept at least 0.996 and four figures 0.954; different ones had at most 0.51.
ALIKE = 0.98
# Images connected by looking the same are one scene, as under a fixed camera, if they are more than FEW and more than
# SCENE of a class. Copies in it differ by at most NEAR of what each differs from its NEXT-th nearest image: of those in
# other sizes and qualities most had at most 0.1 of it. Of different images few had less than 0.4: they are in one part.
FEW, SCENE, NEXT, NEAR = 10, 0.25, 4, 0.4


class Choice(NamedTuple):
    """Samples that are held out, and what could not be separated."""

    held_out: frozenset[int]
    in_scenes: int = 0  # number of samples that look like a large part of their class
    twice: tuple[tuple[str, str], ...] = ()  # files of each image that is in several classes


@DATASETS.register_module()
class HeldOut:
    """One of two parts of a data set: what trains, or a fraction of each class that is held out for validation.

    The choice depends on the names of the files, so a new image changes it little. Images that look the same, such as
    copies of another size or format, are in one part, lest the score be of images that were trained on. Where a large
    part of a class looks the same, as under a fixed camera, only those that are much nearer than others are.

    All other attributes are those of the data set.

    Args:
        dataset: config of the data set.
        val_fraction: fraction of each class that is held out, at least one image if there are two that differ.
        test_mode: whether this is the held-out part.
        seed: seed of the choice.

    Attributes:
        note: a line for the log, once the part that trains is loaded.

    Raises:
        UserError: no image can be held out.
    """

    note = ''

    def __init__(self, dataset: dict, val_fraction: float, test_mode: bool = False, seed: int = 0) -> None:
        self.dataset, self.is_loaded = ALL_DATASETS.build(dataset), False
        self.val_fraction, self.test_mode, self.seed = val_fraction, test_mode, seed
        if not dataset.get('lazy_init'):
            self.full_init()

    def full_init(self) -> None:
        """Load the annotations, compare the images, and keep the samples of this part."""
        if self.is_loaded:
            return
        self.dataset.full_init()
        infos = [self.dataset.get_data_info(index) for index in range(len(self.dataset))]
        files = tuple(str(info.get('img_path', '')) for info in infos)
        labels = (info.get('gt_label') for info in infos)
        classes = tuple(label if isinstance(label, (int, np.integer)) else None for label in labels)
        choice = choose_held_out(files, classes, self.val_fraction, self.seed)
        if not choice.held_out:
            raise UserError(f'val_fraction={self.val_fraction} requires two different images in some class')
        own = [index for index in range(len(infos)) if (index in choice.held_out) == self.test_mode]
        self.dataset, self.is_loaded = self.dataset.get_subset(own), True
        if not self.test_mode:
            absent = sorted({*classes} - {classes[index] for index in choice.held_out} - {None})
            names = self.dataset.metainfo.get('classes') or {}
            words = _describe(choice, [str(names[label] if label < len(names) else label) for label in absent])
            words += '' if _can_compare(files) else '; images are not compared, copies may be in both'
            numbers = f'{len(own):,} samples train, {len(choice.held_out):,} validate'
            self.note = f'val_fraction={self.val_fraction}: {numbers}{words}'

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[index]

    def __getattr__(self, name: str) -> Any:
        if name == 'dataset':  # not set yet during a copy
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __repr__(self) -> str:
        part = 'the held-out part' if self.test_mode else 'the training part'
        return f'HeldOut(val_fraction={self.val_fraction}), {part} of {self.dataset!r}'


def _describe(choice: Choice, absent: Sequence[str]) -> str:
    """Return what could not be separated; ``absent`` are names of classes without an image that validates."""
    words = ''
    if absent:
        shown = ', '.join([*absent[:3], *['...'] * (len(absent) > 3)])
        words += f'; classes without a validation image: {len(absent)} ({shown})'
    if choice.in_scenes:
        words += f'; {choice.in_scenes:,} images look alike, as under one camera: only close copies are kept together'
    if choice.twice:
        words += f'; images in several classes: {len(choice.twice)}, such as {" and ".join(choice.twice[0])}'
    return words


@functools.lru_cache(maxsize=2)  # both parts ask for the same
def choose_held_out(files: tuple[str, ...], classes: tuple[Any, ...], fraction: float, seed: int) -> Choice:
    """Choose samples of each class by the names of their files; those that look the same together.

    Args:
        files: path of each sample; empty for data in memory.
        classes: class of each sample.
        fraction: fraction of the samples of a class.
        seed: seed of the choice.
    """
    groups, *found = group_images(files, classes) if _can_compare(files) else [[[index] for index in range(len(files))]]
    top = os.path.commonpath(files) if files and all(files) else ''
    names = [f'{seed} {os.path.relpath(file, top) if top else index}' for index, file in enumerate(files)]
    order = [blake2b(name.encode()).digest() for name in names]
    groups.sort(key=lambda group: min(order[index] for index in group))
    counts = [Counter(classes[index] for index in group) for group in groups]
    sizes: dict[Any, list[tuple[int, int]]] = {}  # of the groups of each class, with their numbers
    for number, own in enumerate(counts):
        for name, size in own.items():
            sizes.setdefault(name, []).append((size, number))
    trains, left = set(), Counter()
    for name, own in sizes.items():
        *others, (_, largest) = sorted(own)
        trains.add(largest)  # one group of each class
        left[name] = max(round(fraction * sum(size for size, _ in own)), others[0][0] if others else 0)
    chosen: set[int] = set()
    for number, (group, own) in enumerate(zip(groups, counts)):
        if number not in trains and all(size <= left[name] for name, size in own.items()):
            chosen.update(group)
            left.subtract(own)
    return Choice(frozenset(chosen), *found)


def _can_compare(files: Sequence[str]) -> bool:
    return 0 < len(files) <= MOST_COMPARED and all(os.path.isfile(file) for file in files)


def group_images(files: Sequence[str], classes: Sequence[Any]) -> tuple[list[list[int]], int, tuple]:
    """Return the groups of indices of images that look the same, in any class, and what :class:`Choice` tells."""
    with ThreadPoolExecutor(joblib.cpu_count()) as pool:
        digests, copies = zip(*pool.map(_describe_image, files))
    equal: dict[bytes, list[int]] = {}
    for index, digest in enumerate(digests):
        equal.setdefault(digest, []).append(index)
    same = [*equal.values()]  # one of each is compared with others
    labels = [{classes[index]: files[index] for index in indices} for indices in same]
    pixels = np.stack([copies[index] for index, *_ in same])
    total = Counter(label for own in labels for label in own)
    groups, in_scenes = [], 0
    for group in _alike(_normalise(pixels.reshape(-1, SIDE // 2, 2, SIDE // 2, 2).mean(axis=(2, 4)))):
        counts = Counter(label for one in group for label in labels[one])
        if len(group) > FEW and any(counts[label] > SCENE * total[label] for label in counts):
            in_scenes += len(group)
            groups += [group[part] for part in _nearest(_normalise(pixels[group]))]
        else:
            groups.append(group)
    twice = tuple(tuple(own.values())[:2] for own in labels if len(own) > 1)
    return [[index for one in group for index in same[one]] for group in groups], in_scenes, twice


def _describe_image(file: str) -> tuple[bytes, np.ndarray]:
    try:
        with Image.open(file) as image:
            image.draft(None, (4 * SIDE, 4 * SIDE))  # a JPEG is decoded at a fraction of its size
            if image.mode in ('P', 'RGBA', 'LA', 'PA') or 'transparency' in image.info:
                image = image.convert('RGBA')
                image = Image.alpha_composite(Image.new('RGBA', image.size, 'white'), image)
            image = image.convert('RGB') if image.mode in ('1', 'L', 'RGBA', 'CMYK', 'YCbCr') else image
            content = f'{image.mode} {image.size}'.encode() + image.tobytes()
            pixels = np.asarray(image.convert('F').resize((SIDE, SIDE), Image.Resampling.BOX))
    except Exception:  # of a decoder, of any type
        content, pixels = Path(file).read_bytes(), np.zeros((SIDE, SIDE), np.float32)
    return blake2b(content).digest(), pixels


def _normalise(pixels: np.ndarray) -> np.ndarray:
    """Return images as rows of mean 0 and norm 1, whose products are correlations; flat ones are 0."""
    rows = pixels.reshape(len(pixels), -1)
    rows = rows - rows.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(norms < FLAT * rows.shape[1] ** 0.5, 0, rows / np.maximum(norms, 1e-9))


def _alike(looks: np.ndarray) -> list[np.ndarray]:
    """Return the groups of images that are connected by a correlation of at least ``ALIKE``."""
    number = len(looks)
    everyone = firsts = np.arange(number)
    for start in range(0, number, 256):
        is_new = firsts[start : start + 256, None] != firsts[start:]  # others are in one group already
        rows, columns = np.nonzero(is_new & (looks[start : start + 256] @ looks[start:].T >= ALIKE))
        groups = _join(np.append(rows + start, everyone), np.append(columns + start, firsts), number)
        firsts = np.unique(groups, return_index=True)[1][groups]
    return _members(firsts)


def _nearest(looks: np.ndarray) -> list[np.ndarray]:
    """Return the groups of images of a scene that are connected by being much nearer than others are."""
    found = []
    for start in range(0, len(looks), 256):
        distances = np.maximum(1 - looks[start : start + 256] @ looks.T, 1e-6)  # above the error of float32
        near = np.argpartition(distances, NEXT, axis=1)[:, : NEXT + 1].copy()  # itself and the nearest others
        found.append((near, np.take_along_axis(distances, near, axis=1)))
    near, distances = (np.concatenate(each) for each in zip(*found))
    reach = distances.max(axis=1)
    rows, places = np.nonzero(distances <= NEAR * np.minimum(reach[:, None], reach[near]))
    return _members(_join(rows, near[rows, places], len(looks)))


def _join(ones: np.ndarray, others: np.ndarray, number: int) -> np.ndarray:
    """Return the number of the group of each image, given pairs that are in one group."""
    graph = coo_array((np.ones(len(ones), bool), (ones, others)), (number, number))
    return connected_components(graph, directed=False)[1]


def _members(groups: np.ndarray) -> list[np.ndarray]:
    """Return the images of each group."""
    order = np.argsort(groups, kind='stable')
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
