"""Scenes in which the class of a digit depends on whether the same digit occurs far away, for segmentation."""

import numpy as np

from vt.datasets import DigitScenes
from vt.datasets.digit_scenes import NUM_DIGITS, Cell, place_cells
from vt.registry import DATASETS


@DATASETS.register_module()
class RelationalDigitScenes(DigitScenes):
    """Digit scenes with two classes: ``paired`` digits, which occur twice in the scene, and ``single`` ones.

    A scene has up to two pairs of the same digit in different handwriting, whose centres are at least half the scene
    apart; all other digits differ. Classification needs a comparison of distant positions. The position of a digit
    alone is informative, too: digits in the middle of a scene are rarely paired, for lack of space.

    Arguments and errors are those of :class:`vt.DigitScenes`.
    """

    METAINFO = dict(classes=('background', 'single', 'paired'), palette=[[0, 0, 0], [0, 130, 200], [245, 130, 48]])

    def choose_digits(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, list[Cell]]:
        number = rng.integers(*NUM_DIGITS, endpoint=True)
        num_pairs = rng.integers(0, number // 2, endpoint=True)
        kinds = rng.permutation(10)[: number - num_pairs]
        kinds = np.concatenate([np.repeat(kinds[:num_pairs], 2), kinds[num_pairs:]])  # pairs first
        written = []
        for kind in kinds:
            alike = np.setdiff1d(np.flatnonzero(self.digits == kind), written)
            written.append(int(rng.choice(alike)))
        classes = np.where(np.arange(number) < 2 * num_pairs, 2, 1)
        return np.array(written), classes, place_cells(rng, number, num_pairs)
