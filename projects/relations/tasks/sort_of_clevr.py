"""Sort-of-CLEVR: questions about six coloured shapes, relational and non-relational.

Sizes are in pixels, colours from 0 to 1.
"""

import cv2
import numpy as np

from vt.errors import UserError
from vt.registry import DATASETS

from .generated_images import Drawn, GeneratedImages, square

SIZE = 64  # height and width of an image
STRIP = 8  # upper rows, which show the question
HALF = 4  # half of the side of a square, or radius of a circle
COLOURS = ((1, 0, 0), (0, 0.8, 0), (0, 0, 1), (1, 0.6, 0), (0.4, 0.4, 0.4), (1, 1, 0))
SHAPES = ('square', 'circle')
ANSWERS = ('no', 'yes', *SHAPES, *'123456')
# Three questions of each kind.
QUESTIONS = {
    'non-relational': ('shape', 'left', 'upper'),
    'relational': ('closest', 'furthest', 'count'),
}


@DATASETS.register_module()
class SortOfCLEVR(GeneratedImages):
    """Images of six coloured shapes with a question about one of them; the class is the answer.

    Santoro et al., A simple neural network module for relational reasoning, NIPS 2017, section 4.3: six objects of six
    colours, each a square or a circle, at random positions where none touches another. *Non-relational* questions are
    about one object: is it a square or a circle, is it on the left, is it in the upper half? *Relational* questions
    compare it with the others: the shape of the closest one, the shape of the furthest one, the number of objects of
    its shape including itself.

    The question is part of the image, the only input of a classifier: a strip above the scene has the colour of the
    object, and a white square at the left, centre or right for the first, second or third question. Everything else
    follows the published procedure.

    Args:
        kind: ``'relational'`` or ``'non-relational'``.
        split, num_images, seed, **kwargs: see :class:`.generated_images.GeneratedImages`.

    Raises:
        UserError: ``kind`` or ``split`` has another value.
    """

    def __init__(self, kind: str = 'relational', **kwargs) -> None:
        if kind not in QUESTIONS:
            raise UserError(f"SortOfCLEVR: kind={kind!r} is neither 'relational' nor 'non-relational'")
        self.kind = kind
        super().__init__(ANSWERS, **kwargs)

    def label_of(self, index: int) -> int:
        """Return the class of an image, the answer to its question."""
        return self._scene(self.stream(index))[4]

    def draw(self, rng: np.random.Generator, label: int) -> Drawn:
        """Draw the scene of a random generator, whose answer is ``label``, and its question."""
        centres, shapes, asked, question, answer, compared = self._scene(rng)
        image = np.full((SIZE, SIZE, 3), 1.0, np.float32)
        for centre, shape, colour in zip(centres.tolist(), shapes, COLOURS):
            corner, opposite = ([side + offset for side in centre] for offset in (-HALF, HALF))
            if shape:
                cv2.circle(image, centre, HALF, colour, -1)
            else:
                cv2.rectangle(image, corner, opposite, colour, -1)
        image[:STRIP] = COLOURS[asked]
        left = 2 + question * (SIZE - STRIP) // 2
        image[2 : STRIP - 2, left : left + STRIP - 4] = 1
        boxes = [square(x - HALF, y - HALF, 2 * HALF + 1) for x, y in centres.tolist()]
        related = {asked, *compared}
        return Drawn(
            image[..., ::-1],  # OpenCV's channel order
            answer,
            [boxes[index] for index in sorted(related)],
            [box for index, box in enumerate(boxes) if index not in related],
        )

    def _scene(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, int, int, int, list[int]]:
        """Draw the objects and the question of a scene.

        Returns:
            Centres ``(6, 2)`` as (x, y), shapes, index of the object in question, question, answer, and indices of the
            objects that are compared with it.
        """
        asked, question = int(rng.integers(len(COLOURS))), int(rng.integers(3))
        shapes = rng.integers(2, size=len(COLOURS))
        centres: list[list[int]] = []
        while len(centres) < len(COLOURS):
            for x, y in rng.integers((HALF, STRIP + HALF), SIZE - HALF, size=(16, 2)).tolist():
                if all((x - left) ** 2 + (y - top) ** 2 > (3 * HALF) ** 2 for left, top in centres):
                    centres.append([x, y])
        found = np.array(centres[: len(COLOURS)])
        answer, compared = self._answer(found, shapes, asked, QUESTIONS[self.kind][question])
        return found, shapes, asked, question, ANSWERS.index(answer), compared

    @staticmethod
    def _answer(centres: np.ndarray, shapes: np.ndarray, asked: int, question: str) -> tuple[str, list[int]]:
        others = [index for index in range(len(centres)) if index != asked]
        distances = ((centres[others] - centres[asked]) ** 2).sum(axis=1)
        closest, furthest = others[distances.argmin()], others[distances.argmax()]
        return dict(
            shape=(SHAPES[shapes[asked]], []),
            left=(ANSWERS[int(centres[asked][0] < SIZE / 2)], []),
            upper=(ANSWERS[int(centres[asked][1] < (SIZE + STRIP) / 2)], []),
            closest=(SHAPES[shapes[closest]], [closest]),
            furthest=(SHAPES[shapes[furthest]], [furthest]),
            count=(str((shapes == shapes[asked]).sum()), others),
        )[question]
