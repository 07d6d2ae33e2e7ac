"""Same-different tasks: problems 1 and 7 of the synthetic visual reasoning test (SVRT), and its parametric form.

Sizes are in pixels, colours from 0 to 1.
"""

from collections.abc import Sequence
from hashlib import blake2b

import cv2
import numpy as np

from vt.errors import UserError
from vt.registry import DATASETS

from .generated_images import Drawn, GeneratedImages, square

SIZE = 64  # height and width of SVRT images; half of the published size
RADII = {1: 13.125, 7: 10.5}  # outer radius of shapes by problem; half of the published 26.25 and 21 at 128 pixels
HOLES = {1: 1.25, 7: 1.0}  # inner radius of the ring that contains an outline; half of the published 2.5 and 2
GAP = 2  # maximum distance between consecutive points of an outline
MARGIN = 1  # free pixels around each shape
JUMP = 0.2  # maximum displacement of the middle of an edge, relative to its length
NUM_SHAPES = {1: 2, 7: 6}
SHARES = ('train', 'train', 'val', 'test')  # splits of PSVRT images by their digests
TRIES = 100  # attempts for a position before all shapes are placed again


@DATASETS.register_module()
class SVRT(GeneratedImages):
    """Problems 1 and 7 of the synthetic visual reasoning test: black outlines on white, at half the published size.

    Fleuret et al., Comparing machines and humans on a visual categorization test, PNAS 2011. Shapes are random closed
    outlines; equal shapes are translated copies, without rotation or scaling.

    - Problem 1: two shapes, different or the same.
    - Problem 7: six shapes, three pairs or two triples of equal shapes.

    As in the published generator, an outline starts with one point in each quadrant of a ring. The middle of each edge
    is displaced at random, recursively, until the points are neighbours; points outside the ring are drawn again.

    Args:
        problem: 1 or 7.
        split, num_images, seed, **kwargs: see :class:`.generated_images.GeneratedImages`.

    Raises:
        UserError: ``problem`` or ``split`` has another value.
    """

    CLASSES = {1: ('different', 'same'), 7: ('three pairs', 'two triples')}

    def __init__(self, problem: int = 1, **kwargs) -> None:
        if problem not in self.CLASSES:
            raise UserError(f'SVRT: problem={problem} must be one of {", ".join(map(str, self.CLASSES))}')
        self.problem = problem
        self.ring = HOLES[problem], RADII[problem]
        super().__init__(self.CLASSES[problem], **kwargs)

    def draw(self, rng: np.random.Generator, label: int) -> Drawn:
        """Draw the shapes of a class at positions where none touches another."""
        number = NUM_SHAPES[self.problem]
        alike = (2 if label else 1) if self.problem == 1 else (3 if label else 2)  # number of equal shapes
        while True:
            outlines = [draw_outline(rng, *self.ring) for _ in range(number // alike)]
            placed = place_outlines(rng, [outlines[index // alike] for index in range(number)])
            if placed is not None:
                break
        image = np.ones((SIZE, SIZE), np.float32)
        cv2.polylines(image, placed, isClosed=True, color=0.0)
        return Drawn(image, label, [(*points.min(0).tolist(), *(points.max(0) + 1).tolist()) for points in placed])


def draw_outline(rng: np.random.Generator, inner: float, radius: float) -> np.ndarray:
    """Draw points ``(n, 2)`` of a closed outline around the origin, at most ``GAP`` apart, with a random rotation."""
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
    """Insert a displaced middle after each point whose edge is ``wide``; it stays inside the outer radius."""
    starts = points[wide]
    steps = np.roll(points, -1, axis=0)[wide] - starts
    reach = JUMP * np.hypot(*steps.T)[:, None]
    middles = starts + steps / 2 + reach * _in_disc(rng, len(starts))
    while (outside := np.hypot(*middles.T) > radius).any():
        again = (starts + steps / 2)[outside] + reach[outside] * _in_disc(rng, outside.sum())
        middles[outside] = again
    return np.insert(points, np.flatnonzero(wide) + 1, middles, axis=0)


def place_outlines(rng: np.random.Generator, outlines: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """Place outlines at random positions apart from each other and the border.

    Returns:
        Pixels ``(n, 2)`` of each outline; None if they do not fit.
    """
    taken = np.ones((SIZE, SIZE), np.uint8)
    taken[MARGIN : SIZE - MARGIN, MARGIN : SIZE - MARGIN] = 0
    placed = []
    for outline in outlines:
        low, high = np.floor(outline.min(axis=0)).astype(int), np.floor(outline.max(axis=0)).astype(int)
        for _ in range(TRIES):
            shift = rng.integers(MARGIN - low, SIZE - MARGIN - high)  # whole pixels, so that equal shapes stay equal
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
    """Draw a point in the first quadrant of the ring."""
    while True:
        point = rng.uniform(0, radius, 2)
        if inner <= np.hypot(*point) <= radius:
            return point


def _in_disc(rng: np.random.Generator, number: int) -> np.ndarray:
    """Draw points ``(number, 2)`` uniformly in the unit disc."""
    angle, distance = rng.uniform(0, 2 * np.pi, number), np.sqrt(rng.uniform(0, 1, number))
    return np.stack([distance * np.cos(angle), distance * np.sin(angle)], axis=1)


@DATASETS.register_module()
class PSVRT(GeneratedImages):
    """Images of two or more patterns of random black and white pixels on grey: are two of them the same?

    The parametric form of the test: Kim, Ricci and Serre, Not-So-CLEVR: learning same-different relations strains
    feedforward neural networks, Interface Focus 2018. The sizes of items and images and the number of items determine
    the difficulty. An item is ``item_size`` x ``item_size`` random bits. In the class ``same`` two items are equal, in
    ``different`` none are. Small settings have so few different images that splits would share some, so the digest of
    an image determines its split.

    Args:
        item_size: side of an item in pixels.
        image_size: side of the image in pixels.
        num_items: number of items.
        split, num_images, seed, **kwargs: see :class:`.generated_images.GeneratedImages`.

    Raises:
        UserError: items are too many or too large for the image, or too many to differ, or ``split`` has another value.
    """

    def __init__(self, item_size: int = 4, image_size: int = 32, num_items: int = 2, **kwargs) -> None:
        if num_items < 2 or item_size < 2:
            raise UserError(f'PSVRT: num_items={num_items} and item_size={item_size} must be at least 2')
        # Each item excludes the corners of others from a square around it; some positions must remain for the last one.
        if image_size < item_size or (num_items - 1) * (2 * item_size + 1) ** 2 >= (image_size - item_size + 1) ** 2:
            raise UserError(
                f'PSVRT: num_items={num_items} of item_size={item_size} need a larger image than '
                f'image_size={image_size}'
            )
        if num_items**2 > 2**item_size**2:  # random items would rarely all differ
            raise UserError(f'PSVRT: num_items={num_items} are too many to differ in item_size={item_size}')
        self.item_size, self.image_size, self.num_items = item_size, image_size, num_items
        super().__init__(('different', 'same'), **kwargs)

    def draw(self, rng: np.random.Generator, label: int) -> Drawn:
        """Draw items of a class at positions where none touches another, as an image of this split."""
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
        """Draw items that all differ, except that the first two are equal in the class ``same``."""
        while True:
            items = list(rng.integers(2, size=(self.num_items, self.item_size, self.item_size)))
            if label:
                items[1] = items[0]
            if len({item.tobytes() for item in items}) == len(items) - label:
                return items
