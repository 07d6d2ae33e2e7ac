"""Images of four handwritten digits, of which two are the same: classification by comparing positions."""

import cv2
import numpy as np

from vt.datasets.digits import load_ink
from vt.registry import DATASETS

from .generated_images import Drawn, GeneratedImages, square

SIZE = 32  # height and width of an image; each quarter contains one digit
DIGIT_SIZES = (11, 15)  # range of the side of a digit's cell
NOISE = 0.05  # standard deviation of independent noise per pixel


@DATASETS.register_module()
class TwinDigits(GeneratedImages):
    """32x32 images with a handwritten digit in each quarter; the class is the digit that occurs twice.

    The two are different images of the digit, so their pixels do not match: a model must recognise all four and compare
    distant positions. Position, size and contrast are random. Train and test use different images (the partition of
    :class:`vt.Digits`).

    Args:
        split: ``'train'`` or ``'test'``.
        *args, **kwargs: see :class:`.generated_images.GeneratedImages`.

    Raises:
        UserError: ``split`` has another value.
    """

    def __init__(self, split: str = 'train', *args, **kwargs) -> None:
        super().__init__(tuple('0123456789'), split, *args, **kwargs)
        self.ink_by_digit = load_ink(split)

    def label_of(self, index: int) -> int:
        """Return the class of an image: the first digit, which occurs twice."""
        return int(self._digits(self.stream(index))[0])

    def draw(self, rng: np.random.Generator, label: int) -> Drawn:
        """Draw the pair and two other digits of a random generator in shuffled quarters."""
        return self.compose(rng, self._digits(rng))

    def compose(self, rng: np.random.Generator, digits: np.ndarray) -> Drawn:
        """Draw an image of three ``digits``, the first of them twice."""
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
        """Return the three digits of an image."""
        return rng.choice(10, size=3, replace=False)
