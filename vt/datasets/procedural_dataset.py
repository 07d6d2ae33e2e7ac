"""Mixin of generated data sets, whose samples depend only on the seed, the split and their index."""

import numpy as np

SPLIT_SEEDS = dict(train=0, test=1, val=2)


def to_bytes(image: np.ndarray) -> np.ndarray:
    """Convert an image from 0 to 1 to uint8."""
    return (image.clip(0, 1) * 255).round().astype(np.uint8)


class Seeded:
    """Mixin of data sets whose samples depend only on ``seed``, ``split`` and their index."""

    split: str
    seed: int

    def stream(self, index: int, *purpose: int) -> np.random.Generator:
        """Return the random generator of a sample; other purposes give independent generators."""
        return np.random.default_rng((self.seed, SPLIT_SEEDS[self.split], index, *purpose))
