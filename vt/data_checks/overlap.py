"""Find samples of validation and test data that are also in the training data."""

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from vt.datasets.hugging_face import RowSamples

from .samples import Problem, Sample, digest_of

LOOKED_AT = 256  # images in memory of a split that are compared, spread evenly
MOST_IMAGES = 200_000  # training images in memory that are compared


def may_share(training: Sequence[dict], other: Sequence[dict]) -> bool:
    """Whether samples can be the same by their paths or pixels: those in rows are where these are the same."""
    folders = {infos.address if isinstance(infos, RowSamples) else '' for infos in (training, other)}
    return len(folders) == 1


def find_shared(training: Sequence[dict], other: Sequence[dict], split: str, source: str) -> list[Problem]:
    """Find samples of a split that are also in the training data: files by path, images in memory by pixels."""
    paths = {_real(info['img_path']) for info in training if isinstance(info.get('img_path'), str)}
    shared = [path for info in other if isinstance(path := info.get('img_path'), str) and _real(path) in paths]
    if shared:
        message = f'{len(shared):,} of {len(other):,} files are also in train, such as {shared[0]}'
        return [Problem('duplicate', source, f'{message}: the scores of {split} have no meaning')]
    if not (training and other and all(isinstance(infos[0].get('img'), np.ndarray) for infos in (training, other))):
        return []
    known = {digest_of(info['img']) for info in training[:MOST_IMAGES]}
    indices = np.linspace(0, len(other) - 1, min(LOOKED_AT, len(other))).astype(int)
    number = sum(digest_of(other[index]['img']) in known for index in indices)
    if not number:
        return []
    message = f'has images of train: {number} of {len(indices)} that were compared'
    advice = f"the scores of {split} have no meaning; MMPretrain's MNIST and similar data sets need test_mode=True"
    return [Problem('duplicate', source, f'{message}: {advice}')]


def _real(path: str) -> str:
    """A path in its real folder; an address as it is."""
    folder, name = os.path.split(path)
    return path if '://' in path else f'{_real_folder(folder)}/{name}'


@lru_cache(maxsize=100_000)
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)


def find_duplicates(samples: Sequence[Sample], others: Sequence[Sample], split: str) -> Iterator[Problem]:
    """Yield a problem for each image or video whose digest is also among ``others``, the samples of ``split``."""
    known = {other.digest: other.path for other in others if other.digest}
    for sample in samples:
        if sample.digest in known:
            what = 'image' if sample.num_frames is None else 'video'
            yield Problem('duplicate', sample.path, f'is the same {what} as {known[sample.digest]} of {split}')


def find_contradictions(samples: Sequence[Sample]) -> Iterator[Problem]:
    """Yield a problem for each image or video that is an earlier one, or a copy of it, with other labels."""
    known: dict[str, Sample] = {}
    for sample in samples:
        first = known.setdefault(sample.digest or sample.path, sample) if not sample.problems else sample
        if first.labels != sample.labels:
            message = f'has the labels {sample.labels}, but {first.path}, the same file, has {first.labels}'
            yield Problem('contradiction', sample.path, message)
