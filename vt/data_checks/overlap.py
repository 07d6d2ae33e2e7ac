"""Samples that a split shares with the training: a test on what was trained on proves nothing."""

from collections.abc import Iterator, Sequence

import numpy as np

from vt.datasets.shards import ShardSamples

from .samples import Problem, Sample, digest_of

LOOKED_AT = 256  # of a split's images in memory, spread evenly
MOST_IMAGES = 200_000  # in memory, of the training


def may_share(training: Sequence[dict], other: Sequence[dict]) -> bool:
    """Whether samples can be the same by their paths or pixels: those in shards are where these are the same."""
    folders = {infos.address if isinstance(infos, ShardSamples) else '' for infos in (training, other)}
    return len(folders) == 1


def find_shared(training: Sequence[dict], other: Sequence[dict], split: str, source: str) -> list[Problem]:
    """Files of a split that are the training's, by their paths, and images in memory, by their pixels.

    Args:
        training, other: what the data sets say about their samples.
        split, source: of the other one.
    """
    paths = {info['img_path'] for info in training if isinstance(info.get('img_path'), str)}
    shared = [info['img_path'] for info in other if info.get('img_path') in paths]
    if shared:
        message = f'{len(shared):,} of {len(other):,} files are also in train, such as {shared[0]}'
        return [Problem('duplicate', source, f'{message}: the scores of {split} say nothing')]
    if not (training and other and all(isinstance(infos[0].get('img'), np.ndarray) for infos in (training, other))):
        return []
    known = {digest_of(info['img']) for info in training[:MOST_IMAGES]}
    indices = np.linspace(0, len(other) - 1, min(LOOKED_AT, len(other))).astype(int)
    number = sum(digest_of(other[index]['img']) in known for index in indices)
    if not number:
        return []
    message = f'has images of train: {number} of {len(indices)} that were looked at'
    advice = f'the scores of {split} say nothing; MNIST and its like of MMPretrain need test_mode=True for other images'
    return [Problem('duplicate', source, f'{message}: {advice}')]


def find_duplicates(samples: Sequence[Sample], others: Sequence[Sample], split: str) -> Iterator[Problem]:
    """Images or videos that are, by their digests, also among the others, of the split of that name."""
    known = {other.digest: other.path for other in others if other.digest}
    for sample in samples:
        if sample.digest in known:
            what = 'image' if sample.num_frames is None else 'video'
            yield Problem('duplicate', sample.path, f'is the same {what} as {known[sample.digest]} of {split}')
