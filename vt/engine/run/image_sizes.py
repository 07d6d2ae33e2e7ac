"""Which images a model takes, for the advice of an error."""

import argparse
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import torch

from vt.engine.config.steps import Run, read_config
from vt.engine.reporting import PartError

from .launch import build_model

SIDES = range(32, 1025, 32)  # pixels, of the sizes that are tried
TRIES = 6


def advising_size(train: Callable[[argparse.Namespace], Run]) -> Callable[[argparse.Namespace], Run]:
    """Return a training whose errors name the nearest ``image_size`` that the model takes, if not the given one.

    Args:
        train: trains with arguments of a command, among them ``config`` and ``cfg_options``.
    """

    @wraps(train)
    def train_or_advise(args: argparse.Namespace) -> Run:
        try:
            return train(args)
        except PartError as error:
            options = args.cfg_options or {}
            asked = options.get('image_size')
            if asked is None or _takes(args.config, options, asked):
                raise
            near = sorted(SIDES, key=lambda side: abs(side - asked))[:TRIES]
            found = next((side for side in near if _takes(args.config, options, side)), None)
            if found is None:
                raise
            words = f'image_size={found} is the nearest to {asked} that the model takes'
            raise PartError(f'{str(error).rstrip(".")}; {words}') from error

    return train_or_advise


@torch.no_grad()
def _takes(config: str, options: Mapping[str, Any], side: int) -> bool:
    """Return whether the model of a config can be built for images of a size, and takes two of them."""
    try:
        model = build_model(read_config(config, {**options, 'image_size': side, 'num_classes': 2}))
        model(torch.zeros(2, 3, side, side), mode='tensor')
    except Exception:  # of any part
        return False
    return True
