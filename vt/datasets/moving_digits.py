"""Two handwritten digits that move one after the other: classes that only the order of the frames tells.

Letters: T frames, S height and width. Sizes are in pixels, colours in 0 to 1.
"""

from collections.abc import Sequence

import cv2
import numpy as np
from mmpretrain.datasets import BaseDataset

from vt.errors import UserError
from vt.registry import DATASETS

from .digits import load_ink
from .generated import Seeded, to_bytes

DIGIT = 0.5  # height and width of a digit, in S
NOISE = 0.03  # standard deviation, each pixel on its own
SHUFFLED, SPEEDS = 2, 3  # purposes of streams of random numbers: shuffle frames, choose speeds
MOTIONS = [
    (first, directions)
    for first in ('top', 'bottom')
    for directions in (('left', 'left'), ('left', 'right'), ('right', 'left'), ('right', 'right'))
]  # which digit moves first, and where the upper and the lower one move
CLASSES = dict(
    motion=tuple(f'{first} first, top {top}, bottom {bottom}' for first, (top, bottom) in MOTIONS),
    digit=tuple('0123456789'),
    speed=('both slow', 'top slow, bottom fast', 'top fast, bottom slow', 'both fast'),
)


@DATASETS.register_module()
class MovingDigits(Seeded, BaseDataset):
    """Half of the frames show a digit above that moves to one side, the other half one below: when, and where to?

    The eight classes of ``'motion'`` are which digit comes first and the direction of each. A video's frames are drawn
    before its class, which then puts them in order: so a frame, and all frames without their order, say nothing about
    it. ``'speed'`` asks which of the two is fast: it goes there and back, at twice the speed, through the positions
    that a slow one passes once. ``'digit'`` is the control of both: the same frames, and the class is the digit, of
    which any frame shows an image. A video is made when it is asked for, from ``seed``, the split and its index alone;
    train and test are written by different people.

    Samples hold ``frames``, T of ``(S, S, 3)`` uint8, and ``gt_label``, so a pipeline is ``vt.PackClips`` alone.

    Args:
        split: ``'train'`` or ``'test'``.
        task: ``'motion'``, ``'speed'`` or ``'digit'``.
        num_videos: length of the data set.
        num_frames: T, even.
        size: S.
        shuffle_frames: show each video's frames in another order, always the same one: what is left of a score is what
            a model can do without time (MViT, table 9).
        seed: seed of the videos.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`, such as ``pipeline`` and ``indices``.

    Raises:
        UserError: ``split`` or ``task`` has another value; ``num_frames`` is odd or below 4, ``size`` below 16.
    """

    def __init__(
        self,
        split: str = 'train',
        task: str = 'motion',
        num_videos: int = 8192,
        num_frames: int = 8,
        size: int = 32,
        shuffle_frames: bool = False,
        seed: int = 0,
        **kwargs,
    ) -> None:
        if task not in CLASSES:
            raise UserError(f"MovingDigits: task='{task}' is none of {', '.join(CLASSES)}")
        if num_frames % 2 or num_frames < 4 or size < 16:
            raise UserError(f'MovingDigits: num_frames={num_frames} must be even and 4 or more, size={size} 16 or more')
        self.ink_by_digit = load_ink(split, other_hands=True)
        self.split, self.task, self.seed = split, task, seed
        self.num_videos, self.num_frames, self.size, self.shuffle_frames = num_videos, num_frames, size, shuffle_frames
        super().__init__(ann_file='', metainfo=dict(classes=CLASSES[task]), test_mode=split == 'test', **kwargs)

    def load_data_list(self) -> list[dict]:
        """One dict a video, with its label."""
        return [dict(index=index, gt_label=self._draw(index)[self.task]) for index in range(self.num_videos)]

    def get_data_info(self, idx: int) -> dict:
        """The video of an index and its label."""
        info = super().get_data_info(idx)
        drawn = self._draw(info['index'])
        tracks = self.compose(drawn['rng'], drawn['digit'])
        if self.task == 'speed':
            tracks = [at_speed(track, fast) for track, fast in zip(tracks, divmod(drawn['speed'], 2))]
        frames = self.in_order(*tracks, drawn['motion'])
        if self.shuffle_frames:
            frames = [frames[time] for time in self.stream(info['index'], SHUFFLED).permutation(self.num_frames)]
        return info | dict(frames=frames, img_shape=(self.size,) * 2, ori_shape=(self.size,) * 2)

    def compose(self, rng: np.random.Generator, digit: int) -> list[list[np.ndarray]]:
        """Frames of the upper digit, then of the lower one, each from left to right: T / 2 of ``(S, S, 3)`` uint8."""
        two = rng.choice(len(self.ink_by_digit[digit]), size=2, replace=False)
        level, contrast = rng.uniform(0.1, 0.4), rng.uniform(0.4, 0.6)
        inks = self.ink_by_digit[digit][two]
        return [self._track(rng, ink, row, level, contrast) for row, ink in enumerate(inks)]

    def _track(
        self, rng: np.random.Generator, ink: np.ndarray, row: int, level: float, contrast: float
    ) -> list[np.ndarray]:
        """A digit's frames in the upper (0) or lower (1) half, at a steady speed."""
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
        """The order that a class gives to frames which go from left to right."""
        first, directions = MOTIONS[motion]
        upper, lower = (
            track if direction == 'right' else track[::-1] for track, direction in zip((upper, lower), directions)
        )
        return [*upper, *lower] if first == 'top' else [*lower, *upper]

    def _draw(self, index: int) -> dict:
        """The generator of a video, its digit and its classes of motion and speed."""
        rng, speed = self.stream(index), self.stream(index, SPEEDS).integers(4)
        return dict(digit=int(rng.integers(10)), motion=int(rng.integers(len(MOTIONS))), speed=int(speed), rng=rng)


def at_speed(track: Sequence[np.ndarray], fast: bool) -> list[np.ndarray]:
    """A track's frames as they are, or every other one there and the rest of them back."""
    return [*track[::2], *track[1::2][::-1]] if fast else [*track]
