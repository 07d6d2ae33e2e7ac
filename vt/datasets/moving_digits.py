"""Videos of two handwritten digits that move one after the other; only the order of the frames determines the class.

Letters: T frames, S height and width. Sizes are in pixels, colours from 0 to 1.
"""

from collections.abc import Sequence
from typing import Literal

import cv2
import numpy as np
from mmpretrain.datasets import BaseDataset

from vt.errors import UserError
from vt.registry import DATASETS

from .digits import load_ink
from .procedural_dataset import Seeded, to_bytes

DIGIT = 0.5  # height and width of a digit, as a fraction of S
NOISE = 0.03  # standard deviation of independent noise per pixel
SHUFFLED = 2  # purpose of a random generator: shuffle frames
MOTIONS = [
    (first, directions)
    for first in ('top', 'bottom')
    for directions in (('left', 'left'), ('left', 'right'), ('right', 'left'), ('right', 'right'))
]  # which digit moves first, and the directions of the upper and the lower one
CLASSES = dict(
    motion=tuple(f'{first} first, top {top}, bottom {bottom}' for first, (top, bottom) in MOTIONS),
    digit=tuple('0123456789'),
)


@DATASETS.register_module()
class MovingDigits(Seeded, BaseDataset):
    """Videos in which half of the frames show a digit moving in the upper half, and the others one in the lower half.

    There are two tasks:

    - ``'motion'``: eight classes, which digit moves first and the direction of each. Frames are drawn independently of
      the class, which only determines their order, so frames without their order contain no information about it.
    - ``'digit'``: the control task, with the same frames. The class is the digit, which every frame shows.

    A video is generated on access from ``seed``, the split and its index. Train and test have different writers.
    Samples contain ``frames``, T arrays ``(S, S, 3)`` uint8, and ``gt_label``, so ``vt.PackClips`` is a complete
    pipeline.

    Args:
        split: ``'train'`` or ``'test'``.
        task: ``'motion'`` or ``'digit'``.
        num_videos: number of videos.
        num_frames: T, even.
        size: S.
        shuffle_frames: shuffle the frames of each video, always in the same way, to measure what a model can recognise
            without temporal order (MViT, table 9).
        seed: seed of the videos.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`, such as ``pipeline`` and ``indices``.

    Raises:
        UserError: ``split`` has another value, ``num_frames`` is odd or below 4, or ``size`` is below 16.
    """

    METAINFO = dict(classes=CLASSES['motion'])

    def __init__(
        self,
        split: str = 'train',
        task: Literal['motion', 'digit'] = 'motion',
        num_videos: int = 8192,
        num_frames: int = 8,
        size: int = 32,
        shuffle_frames: bool = False,
        seed: int = 0,
        **kwargs,
    ) -> None:
        if num_frames % 2 or num_frames < 4 or size < 16:
            raise UserError(f'MovingDigits: num_frames={num_frames} must be even, 4 or more, size={size} 16 or more')
        self.ink_by_digit = load_ink(split, other_hands=True)
        self.split, self.task, self.seed = split, task, seed
        self.num_videos, self.num_frames, self.size, self.shuffle_frames = num_videos, num_frames, size, shuffle_frames
        kwargs = dict(serialize_data=False) | kwargs
        super().__init__(ann_file='', metainfo=dict(classes=CLASSES[task]), test_mode=split == 'test', **kwargs)

    def load_data_list(self) -> list[dict]:
        """Return one dict per video with its label."""
        return [dict(index=index, gt_label=self._draw(index)[self.task]) for index in range(self.num_videos)]

    def get_data_info(self, idx: int) -> dict:
        """Return video and label of an index."""
        info = super().get_data_info(idx)
        drawn = self._draw(info['index'])
        frames = self.in_order(*self.compose(drawn['rng'], drawn['digit']), drawn['motion'])
        if self.shuffle_frames:
            frames = [frames[time] for time in self.stream(info['index'], SHUFFLED).permutation(self.num_frames)]
        return info | dict(frames=frames, img_shape=(self.size,) * 2, ori_shape=(self.size,) * 2)

    def compose(self, rng: np.random.Generator, digit: int) -> list[list[np.ndarray]]:
        """Draw the frames of the upper and of the lower digit, moving right: T / 2 arrays ``(S, S, 3)`` uint8 each."""
        two = rng.choice(len(self.ink_by_digit[digit]), size=2, replace=False)
        level, contrast = rng.uniform(0.1, 0.4), rng.uniform(0.4, 0.6)
        inks = self.ink_by_digit[digit][two]
        return [self._track(rng, ink, row, level, contrast) for row, ink in enumerate(inks)]

    def _track(
        self, rng: np.random.Generator, ink: np.ndarray, row: int, level: float, contrast: float
    ) -> list[np.ndarray]:
        """Draw the frames of a digit in the upper (0) or lower (1) half, moving right at constant speed."""
        number, cell = self.num_frames // 2, int(DIGIT * self.size)
        free = self.size - cell
        distance = rng.integers(free // 2, free, endpoint=True)
        lefts = np.linspace(0, distance, number).round().astype(int) + rng.integers(free - distance, endpoint=True)
        top = row * self.size // 2 + rng.integers(self.size // 2 - cell, endpoint=True)
        ink = contrast * cv2.resize(ink, (cell, cell), interpolation=cv2.INTER_CUBIC).clip(0, 1)
        frames = level + NOISE * rng.standard_normal((number, self.size, self.size), np.float32)
        for frame, left in zip(frames, lefts):
            frame[top : top + cell, left : left + cell] += ink
        return list(np.repeat(to_bytes(frames)[..., None], 3, axis=-1))

    @staticmethod
    def in_order(upper: Sequence[np.ndarray], lower: Sequence[np.ndarray], motion: int) -> list[np.ndarray]:
        """Order frames of digits that move right by a class of motion."""
        first, directions = MOTIONS[motion]
        upper, lower = (track if way == 'right' else track[::-1] for track, way in zip((upper, lower), directions))
        return [*upper, *lower] if first == 'top' else [*lower, *upper]

    def _draw(self, index: int) -> dict:
        """Return the random generator of a video, its digit and its class of motion."""
        rng = self.stream(index)
        return dict(digit=int(rng.integers(10)), motion=int(rng.integers(len(MOTIONS))), rng=rng)
