"""Pathfinder: are two discs at the ends of the same dashed path?

Sizes are in pixels, angles in radians, colours from 0 to 1.
"""

from collections.abc import Sequence

import cv2
import numpy as np

from vt.errors import UserError
from vt.registry import DATASETS

from .generated_images import Drawn, GeneratedImages, square

SIZE = 64  # height and width of an image
DASH = 4.0  # length of a dash
STEP = 6.0  # distance between the middles of consecutive dashes
TURN = 0.5  # maximum angle between consecutive dashes
CLEAR = 4.0  # minimum distance between points of different paths
SEED_DISTANCE = 20  # maximum distance between an end of the first long path and the start of the second
DISC = 2  # radius
NOTHING = np.empty((0, 2))
Path = list[tuple[np.ndarray, float]]  # middle and angle of each dash
Ends = tuple[np.ndarray, np.ndarray]  # middles
LENGTHS = dict(short=4, long=7)  # number of dashes of the two long paths
NUM_DISTRACTORS = 8
TRIES = 30  # attempts for a path before starting again
TURNS = 8  # angles drawn at a time for a dash, of which the first that fits is used
POINTS = np.linspace(-0.5, 0.5, 5)[:, None] * DASH  # points of a dash at which distances are measured


@DATASETS.register_module()
class Pathfinder(GeneratedImages):
    """Images of two long dashed paths among shorter ones, and two discs: at the ends of one path, or of both paths?

    Linsley et al., Learning long-range spatial dependencies with horizontal gated recurrent units, NeurIPS 2018, at
    64x64 pixels instead of 150x150, with dashes scaled accordingly. A path starts at a random point, and each dash is
    rotated a little against the one before; paths keep a minimum distance. Distractors have a third as many dashes. The
    second long path starts near one end of the first, at equal distance from its other end. One disc is on this other
    end, the second disc on the near end (one path) or on the start of the second path (two paths). Both classes have
    the same content and the same distances between discs, so only tracing a path separates them.

    Args:
        length: ``'short'``, paths of 4 dashes, or ``'long'``, 7.
        split, num_images, seed, **kwargs: see :class:`.generated_images.GeneratedImages`.

    Raises:
        UserError: ``length`` or ``split`` has another value.
    """

    def __init__(self, length: str = 'short', **kwargs) -> None:
        if length not in LENGTHS:
            raise UserError(f'Pathfinder: length={length!r} must be one of {", ".join(LENGTHS)}')
        self.length = LENGTHS[length]
        super().__init__(('two paths', 'one path'), **kwargs)

    def draw(self, rng: np.random.Generator, label: int) -> Drawn:
        """Draw paths, and discs at the ends for the class ``label``."""
        paths, ends = self.grow(rng)
        image = np.zeros((SIZE, SIZE), np.uint8)
        for path in paths:
            for middle, angle in path:
                dash = [middle + side * DASH / 2 * _direction(angle) for side in (-1, 1)]
                cv2.line(image, *((16 * end).round().astype(int).tolist() for end in dash), 255, 1, cv2.LINE_AA, 4)
        for middle in ends[label]:
            cv2.circle(image, middle.round().astype(int).tolist(), DISC, 255, -1)
        corners = [middle.round() - DISC for middle in ends[label]]
        return Drawn(image / 255, label, [square(*corner, 2 * DISC + 1) for corner in corners])

    def grow(self, rng: np.random.Generator) -> tuple[list[Path], Sequence[Ends]]:
        """Return the two long paths and the distractors, and the positions of the discs of each class."""
        grown = None
        while grown is None:
            grown = self._grow_two(rng)
        paths, taken, ends = grown
        return paths + self._grow_distractors(rng, taken), ends

    def _grow_two(self, rng: np.random.Generator) -> tuple[list[Path], np.ndarray, Sequence[Ends]] | None:
        """Return the two long paths, their points, and the discs of each class; None if they do not fit."""
        first = _grow(rng, rng.uniform(DASH, SIZE - DASH, 2), self.length, NOTHING)
        if first is None:
            return None
        path, taken = first
        near, far = (path[end][0] for end in rng.permutation([0, -1]))
        widest = 2 * np.arcsin(min(1.0, SEED_DISTANCE / 2 / np.hypot(*(near - far))))
        for _ in range(TRIES):
            start = far + _turned(near - far, rng.uniform(-widest, widest))
            second = _grow(rng, start, self.length, taken)
            if second is not None:
                return [path, second[0]], np.vstack([taken, second[1]]), ((far, start), (far, near))
        return None

    def _grow_distractors(self, rng: np.random.Generator, taken: np.ndarray) -> list[Path]:
        """Return up to ``NUM_DISTRACTORS`` distractors, as many as fit."""
        paths = []
        for _ in range(TRIES):
            grown = _grow(rng, rng.uniform(DASH, SIZE - DASH, 2), max(1, self.length // 3), taken)
            if grown is not None:
                paths.append(grown[0])
                taken = np.vstack([taken, grown[1]])
            if len(paths) == NUM_DISTRACTORS:
                break
        return paths


def _grow(
    rng: np.random.Generator, start: np.ndarray, length: int, taken: np.ndarray
) -> tuple[Path, np.ndarray] | None:
    """Return a path away from the points ``taken``, and its own points ``(n, 2)``; None if its dashes do not fit."""
    path, points = [(start, rng.uniform(0, 2 * np.pi))], []
    points.append(start + POINTS * _direction(path[0][1]))
    if not _fit(points[0][None], taken)[0]:
        return None
    while len(path) < length:
        middle, angle = path[-1]
        angles = angle + rng.uniform(-TURN, TURN, TURNS)
        directions = _direction(angles)  # TURNS, 2
        middles = middle + STEP / 2 * (_direction(angle) + directions)
        dashes = middles[:, None] + POINTS * directions[:, None]  # TURNS, points of a dash, 2
        fitting = _fit(dashes, np.vstack([taken, *points[:-1]]))  # the preceding dash may be near
        if not fitting.any():
            return None
        chosen = fitting.argmax()
        path.append((middles[chosen], angles[chosen]))
        points.append(dashes[chosen])
    return path, np.vstack(points)


def _fit(dashes: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """Return which of the dashes ``(n, points, 2)`` are inside the image and away from the points ``(m, 2)``."""
    middles = dashes[:, len(POINTS) // 2]
    inside = ((middles >= DASH) & (middles <= SIZE - DASH)).all(axis=1)
    squares = ((dashes[:, :, None] - taken) ** 2).sum(axis=-1)  # n, points, m
    return inside & (squares > CLEAR**2).all(axis=(1, 2))


def _turned(x: np.ndarray, angle: float) -> np.ndarray:
    (cosine, sine), (column, row) = _direction(angle), x
    return np.array([cosine * column - sine * row, sine * column + cosine * row])


def _direction(angle: float | np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)
