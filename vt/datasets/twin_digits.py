"""Four handwritten digits of which two are alike: classification that has to compare positions."""

import cv2
import numpy as np

from vt.registry import DATASETS

from .digits import load_ink
from .generated import Drawn, GeneratedImages, square

SIZE = 32  # of an image, both ways; each quarter holds one digit
DIGIT_SIZES = (11, 15)  # of a digit's cell
NOISE = 0.05  # standard deviation, each pixel on its own


@DATASETS.register_module()
class TwinDigits(GeneratedImages):
    """Which digit stands there twice? One in each quarter of a 32x32 image; two are alike, the others differ.

    The two are different images of handwriting, so their pixels don't match: all four have to be read, and far
    positions compared. Position, size and contrast are random. Train and test have no handwriting in common (the
    partition of :class:`vt.Digits`).

    Args:
        split: ``'train'`` or ``'test'``.
        num_images, seed, others: as in :class:`vt.datasets.generated.GeneratedImages`.

    Raises:
        UserError: ``split`` has another value.
    """

    def __init__(self, split: str = 'train', *args, **kwargs) -> None:
        super().__init__(tuple('0123456789'), split, *args, **kwargs)
        self.ink_by_digit = load_ink(split)

    def label_of(self, index: int) -> int:
        """The class of an image: the digit that is drawn first stands there twice."""
        return int(self._digits(self.stream(index))[0])

    def draw(self, rng: np.random.Generator, label: int) -> Drawn:
        """The pair and two other digits of a stream of random numbers, in shuffled quarters."""
        return self.compose(rng, self._digits(rng))

    def compose(self, rng: np.random.Generator, digits: np.ndarray) -> Drawn:
        """An image of three ``digits``, the first of them twice."""
        pair = rng.choice(len(self.ink_by_digit[digits[0]]), size=2, replace=False)
        others = [rng.integers(len(self.ink_by_digit[digit])) for digit in digits[1:]]
        image = rng.uniform(0.1, 0.4) + NOISE * rng.standard_normal((SIZE, SIZE), np.float32)
        half, boxes = SIZE // 2, []
        for quarter, digit, index in zip(rng.permutation(4), [digits[0], *digits], [*pair, *others]):
            size = int(rng.integers(*DIGIT_SIZES, endpoint=True))
            top, left = rng.integers(half - size, size=2, endpoint=True) + half * np.array(divmod(quarter, 2))
            ink = cv2.resize(self.ink_by_digit[digit][index], (size, size), interpolation=cv2.INTER_CUBIC).clip(0, 1)
            image[top : top + size, left : left + size] += ink * rng.uniform(0.3, 0.6)
            boxes.append(square(left, top, size))
        return Drawn(image, int(digits[0]), boxes[:2], boxes[2:])

    @staticmethod
    def _digits(rng: np.random.Generator) -> np.ndarray:
        """The three digits of an image."""
        return rng.choice(10, size=3, replace=False)
