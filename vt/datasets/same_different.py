"""Are two things the same? Problems 1 and 7 of the synthetic visual reasoning test, and its parametric form.

Sizes are in pixels, colours in 0 to 1.
"""

from collections.abc import Sequence
from hashlib import blake2b

import cv2
import numpy as np

from vt.errors import UserError
from vt.registry import DATASETS

from .generated import Drawn, GeneratedImages, square

SIZE = 64  # of a problem's image, both ways; half of the published one
RADII = {1: 13.125, 7: 10.5}  # of a shape, by problem: half of the published generator's, 26.25 and 21 in 128 pixels
HOLES = {1: 1.25, 7: 1.0}  # inner radius of the ring that holds a shape's outline; half of 2.5 and 2
GAP = 2  # an outline's points lie closer than this
MARGIN = 1  # that is kept free around each shape
JUMP = 0.2  # of an edge's middle, in the edge's length
NUM_SHAPES = {1: 2, 7: 6}
SHARES = ('train', 'train', 'val', 'test')  # of the images of PSVRT, which their digests share out
TRIES = 100  # for a position, until the shapes before get new ones


@DATASETS.register_module()
class SVRT(GeneratedImages):
    """Problems 1 and 7 of the synthetic visual reasoning test, black outlines on white, at half of its size.

    Fleuret et al., Comparing machines and humans on a visual categorization test, PNAS 2011. Shapes are random closed
    outlines; the same shape is the same outline elsewhere, neither turned nor scaled.

    - Problem 1: two shapes, different or the same.
    - Problem 7: six shapes, three pairs of the same or two triples.

    As in the published generator an outline begins with a point in each quadrant of a ring; the middle of each edge
    jumps, and the halves' middles in turn, until the points are neighbours; what leaves the ring is drawn again.

    Args:
        problem: 1 or 7.
        split, num_images, seed, others: as in :class:`vt.datasets.generated.GeneratedImages`.

    Raises:
        UserError: ``problem`` or ``split`` has another value.
    """

    CLASSES = {1: ('different', 'same'), 7: ('three pairs', 'two triples')}

    def __init__(self, problem: int = 1, **kwargs) -> None:
        if problem not in self.CLASSES:
            raise UserError(f'SVRT: problem={problem} is none of {", ".join(map(str, self.CLASSES))}')
        self.problem = problem
        self.ring = HOLES[problem], RADII[problem]
        super().__init__(self.CLASSES[problem], **kwargs)

    def draw(self, rng: np.random.Generator, label: int) -> Drawn:
        """Shapes that are ``label`` of the problem, at positions where none touches another."""
        number = NUM_SHAPES[self.problem]
        alike = (2 if label else 1) if self.problem == 1 else (3 if label else 2)  # in a row are the same
        while True:
            outlines = [draw_outline(rng, *self.ring) for _ in range(number // alike)]
            placed = place_outlines(rng, [outlines[index // alike] for index in range(number)])
            if placed is not None:
                break
        image = np.ones((SIZE, SIZE), np.float32)
        cv2.polylines(image, placed, isClosed=True, color=0.0)
        return Drawn(image, label, [(*points.min(0).tolist(), *(points.max(0) + 1).tolist()) for points in placed])


def draw_outline(rng: np.random.Generator, inner: float, radius: float) -> np.ndarray:
    """Points ``(n, 2)`` of a closed outline around the origin, each nearer than ``GAP`` to the next one, turned."""
    while True:
        corners = np.array([_corner(rng, radius, inner) * signs for signs in ((1, 1), (-1, 1), (-1, -1), (1, -1))])
        points = corners
        while (wide := np.abs(np.roll(points, -1, axis=0) - points).max(axis=1) > GAP).any():
            points = _split_edges(rng, points, wide, radius)
        distances = np.hypot(*points.T)
        if distances.min() >= inner:
            break
    angle = rng.uniform(0, 2 * np.pi)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return points @ turn.T


def _split_edges(rng: np.random.Generator, points: np.ndarray, wide: np.ndarray, radius: float) -> np.ndarray:
    """The points with a middle behind each whose edge is ``wide``; the middle jumps, but not out of the ring."""
    starts = points[wide]
    steps = np.roll(points, -1, axis=0)[wide] - starts
    reach = JUMP * np.hypot(*steps.T)[:, None]
    middles = starts + steps / 2 + reach * _in_disc(rng, len(starts))
    while (outside := np.hypot(*middles.T) > radius).any():
        again = (starts + steps / 2)[outside] + reach[outside] * _in_disc(rng, outside.sum())
        middles[outside] = again
    return np.insert(points, np.flatnonzero(wide) + 1, middles, axis=0)


def place_outlines(rng: np.random.Generator, outlines: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """The outlines' pixels ``(n, 2)`` at random positions, apart from each other and the border; None if none fit."""
    taken = np.ones((SIZE, SIZE), np.uint8)
    taken[MARGIN : SIZE - MARGIN, MARGIN : SIZE - MARGIN] = 0
    placed = []
    for outline in outlines:
        low, high = np.floor(outline.min(axis=0)).astype(int), np.floor(outline.max(axis=0)).astype(int)
        for _ in range(TRIES):
            shift = rng.integers(MARGIN - low, SIZE - MARGIN - high)  # whole pixels: the same shape is the same pixels
            points = np.floor(outline + shift).astype(np.int32)
            own = np.zeros((SIZE, SIZE), np.uint8)
            cv2.polylines(own, [points], isClosed=True, color=1)
            if not (own & taken).any():
                break
        else:
            return None
        cv2.bitwise_or(taken, cv2.dilate(own, np.ones((2 * MARGIN + 1,) * 2, np.uint8)), dst=taken)
        placed.append(points)
    return placed


def _corner(rng: np.random.Generator, radius: float, inner: float) -> np.ndarray:
    """A point of the ring's first quadrant."""
    while True:
        point = rng.uniform(0, radius, 2)
        if inner <= np.hypot(*point) <= radius:
            return point


def _in_disc(rng: np.random.Generator, number: int) -> np.ndarray:
    """Points ``(number, 2)``, evenly distributed in the unit disc."""
    angle, distance = rng.uniform(0, 2 * np.pi, number), np.sqrt(rng.uniform(0, 1, number))
    return np.stack([distance * np.cos(angle), distance * np.sin(angle)], axis=1)


@DATASETS.register_module()
class PSVRT(GeneratedImages):
    """Two patterns of random black and white squares on grey: the same, or not?

    The parametric form of the test, Kim, Ricci and Serre, Not-So-CLEVR: learning same-different relations strains
    feedforward neural networks, Interface Focus 2018: how large items and images are, and how many items there are,
    sets how hard it is. An item is ``item_size`` x ``item_size`` bits, a pixel each. They are the same where at least
    two items are equal, bit by bit; all are different otherwise. So few images there are of the smallest settings that
    two splits would share some: a digest gives each image one split.

    Args:
        item_size: side of an item.
        image_size: side of the image.
        num_items: how many items there are.
        split, num_images, seed, others: as in :class:`vt.datasets.generated.GeneratedImages`.

    Raises:
        UserError: items that are too many or too large for the image, or too many to differ; ``split`` has another
            value.
    """

    def __init__(self, item_size: int = 4, image_size: int = 32, num_items: int = 2, **kwargs) -> None:
        if num_items < 2 or item_size < 2:
            raise UserError(f'PSVRT: num_items={num_items} and item_size={item_size} are at least 2')
        # Each item keeps the others' corners out of a square around its own; some must be left for the last one.
        if image_size < item_size or (num_items - 1) * (2 * item_size + 1) ** 2 >= (image_size - item_size + 1) ** 2:
            raise UserError(
                f'PSVRT: num_items={num_items} of item_size={item_size} need a larger image than '
                f'image_size={image_size}'
            )
        if num_items**2 > 2**item_size**2:  # few draws would be all different
            raise UserError(f'PSVRT: num_items={num_items} are too many to differ in item_size={item_size}')
        self.item_size, self.image_size, self.num_items = item_size, image_size, num_items
        super().__init__(('different', 'same'), **kwargs)

    def draw(self, rng: np.random.Generator, label: int) -> Drawn:
        """Items that are ``label``, at positions where none touches another, in an image of this split."""
        while True:
            drawn = self._draw_of_any_split(rng, label)
            if SHARES[blake2b(drawn.image.tobytes()).digest()[0] % len(SHARES)] == self.split:
                return drawn

    def _draw_of_any_split(self, rng: np.random.Generator, label: int) -> Drawn:
        side, corners = self.item_size, []
        items = self._draw_items(rng, label)
        while len(corners) < self.num_items:
            corner = rng.integers(self.image_size - side, size=2, endpoint=True)
            if all(np.abs(corner - other).max() > side for other in corners):
                corners.append(corner)
        image = np.full((self.image_size, self.image_size), 0.5, np.float32)
        for item, (top, left) in zip(items, corners):
            image[top : top + side, left : left + side] = item
        boxes = [square(left, top, side) for top, left in corners]
        return Drawn(image, label, boxes[:2], boxes[2:])

    def _draw_items(self, rng: np.random.Generator, label: int) -> list[np.ndarray]:
        """The items, all different but, where they are the same, the first two."""
        while True:
            items = list(rng.integers(2, size=(self.num_items, self.item_size, self.item_size)))
            if label:
                items[1] = items[0]
            if len({item.tobytes() for item in items}) == len(items) - label:
                return items
