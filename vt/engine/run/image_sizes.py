"""Which images a model takes, for the advice of an error."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from vt.engine.config.steps import read_config
from vt.engine.reporting import PartError

from .launch import build_model

SIDES = range(32, 1025, 32)  # pixels, of the sizes that are tried
TRIES = 6


@contextmanager
def advising_size(config: str, options: Mapping[str, Any]) -> Iterator[None]:
    """Add the nearest ``image_size`` that the model takes to an error of a part, if it does not take the given one.

    Args:
        config: path of the config.
        options: its options, among them ``image_size``; without it errors stay as they are.
    """
    try:
        yield
    except PartError as error:
        asked = options.get('image_size')
        if asked is None or _takes(config, options, asked):
            raise
        near = sorted(SIDES, key=lambda side: abs(side - asked))[:TRIES]
        found = next((side for side in near if _takes(config, options, side)), None)
        if found is None:
            raise
        raise PartError(
            f'{str(error).rstrip(".")}; image_size={found} is the nearest to {asked} that the model takes'
        ) from error


@torch.no_grad()
def _takes(config: str, options: Mapping[str, Any], side: int) -> bool:
    """Return whether the model of a config can be built for images of a size, and takes two of them."""
    try:
        model = build_model(read_config(config, {**options, 'image_size': side, 'num_classes': 2}))
        model(torch.zeros(2, 3, side, side), mode='tensor')
    except Exception:  # of any part
        return False
    return True
