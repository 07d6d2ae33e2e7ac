"""Four handwritten digits of which two are alike: classification that has to compare places.

Sizes are in pixels, colours in 0 to 1.
"""

import cv2
import numpy as np

from vt.registry import DATASETS

from .digits import load_handwriting
from .generated import Drawn, GeneratedImages

SIZE = 32  # of an image, both ways; each quarter holds one digit
DIGIT_SIZES = (11, 15)  # of a digit's cell
NOISE = 0.05  # standard deviation, each pixel on its own


@DATASETS.register_module()
class TwinDigits(GeneratedImages):
    """Which digit stands there twice? One in each quarter of a 32x32 image; two are alike, the others differ.

    The two are different images of handwriting, so their pixels don't match: all four have to be read, and far places
    compared. Place, size and contrast are random. Train and test have no handwriting in common (the partition of
    :class:`vt.Digits`).

    Args:
        split: ``'train'`` or ``'test'``.
        num_images, seed, others: as in :class:`vt.datasets.generated.GeneratedImages`.

    Raises:
        UserError: ``split`` has another value.
    """

    def __init__(self, split: str = 'train', *args, **kwargs) -> None:
        super().__init__(tuple('0123456789'), split, *args, **kwargs)
        images, labels = load_handwriting(split)
        ink = images.astype(np.float32) / 255  # n, 8, 8
        self.ink_by_digit = [ink[labels == digit] for digit in range(10)]

    def label_of(self, index: int) -> int:
        """The class of an image: the first of its digits drawn is the one that stands there twice."""
        return int(self._digits(self.stream(index))[0])

    def draw(self, rng: np.random.Generator, label: int) -> Drawn:
        """The twin, the twin and two others of a stream of random numbers, in shuffled quarters."""
        return self.compose(rng, self._digits(rng))

    def compose(self, rng: np.random.Generator, digits: np.ndarray) -> Drawn:
        """An image of the twin and the two others: ``digits``, the twin first."""
        twins = rng.choice(len(self.ink_by_digit[digits[0]]), size=2, replace=False)
        others = [rng.integers(len(self.ink_by_digit[digit])) for digit in digits[1:]]
        written = [self.ink_by_digit[digits[0]][index] for index in twins]
        written += [self.ink_by_digit[digit][index] for digit, index in zip(digits[1:], others)]
        image = rng.uniform(0.1, 0.4) + NOISE * rng.standard_normal((SIZE, SIZE), np.float32)
        half, boxes = SIZE // 2, []
        for quarter, ink in zip(rng.permutation(4), written):
            size = int(rng.integers(*DIGIT_SIZES, endpoint=True))
            top, left = rng.integers(half - size, size=2, endpoint=True) + half * np.array(divmod(quarter, 2))
            ink = cv2.resize(ink, (size, size), interpolation=cv2.INTER_CUBIC).clip(0, 1)
            image[top : top + size, left : left + size] += ink * rng.uniform(0.3, 0.6)
            boxes.append((int(left), int(top), int(left) + size, int(top) + size))
        return Drawn(image, int(digits[0]), boxes[:2], boxes[2:])

    @staticmethod
    def _digits(rng: np.random.Generator) -> np.ndarray:
        """The three digits of an image, the twin first."""
        return rng.choice(10, size=3, replace=False)
