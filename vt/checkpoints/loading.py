"""Make all libraries read checkpoints weights-only within a block, so that no code of a checkpoint runs."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mmengine.model import PretrainedInit as PlainPretrainedInit
from mmengine.registry import WEIGHT_INITIALIZERS
from mmengine.runner.checkpoint import CheckpointLoader
from torch import nn

from .grids import Size
from .reading import FLAG, is_trusted, load_checkpoint
from .weights import load_init_cfg

FORCE, FORCE_NOT = 'TORCH_FORCE_WEIGHTS_ONLY_LOAD', 'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'


@contextmanager
def weights_only(unless: bool = False) -> Iterator[None]:
    """Read every checkpoint weights-only within the block, by any library and also in worker processes.

    mmengine's loader and its ``init_cfg=dict(type='Pretrained')`` are replaced; for other calls of ``torch.load``
    PyTorch's environment variable is set. This applies to the whole process until the end of the block. Blocks may be
    nested.

    Args:
        unless: allow code in checkpoints, also in inner blocks, and print a warning on standard error.
    """
    if unless:
        print(f'warning: {FLAG}: code in checkpoints runs; use it only for files that you trust', file=sys.stderr)
    token = is_trusted.set(unless or is_trusted.get())
    switches = {name: os.environ.pop(name, None) for name in (FORCE, FORCE_NOT)}  # PyTorch does not accept both
    if not is_trusted.get():
        os.environ[FORCE] = '1'
    before = WEIGHT_INITIALIZERS.get('Pretrained'), vars(CheckpointLoader)['load_checkpoint']
    _install(PretrainedInit, staticmethod(_load))
    try:
        yield
    finally:
        _install(*before)  # in a nested block, those of the outer block
        os.environ.pop(FORCE, None)
        os.environ.update({name: value for name, value in switches.items() if value is not None})
        is_trusted.reset(token)


class PretrainedInit(PlainPretrainedInit):
    """``init_cfg=dict(type='Pretrained', ...)`` for parts of all libraries.

    The options are those of :func:`vt.checkpoints.weights.load_weights`.
    """

    def __init__(
        self,
        checkpoint: str,
        prefix: str | None = None,
        weights: str | None = None,
        grid: Size | None = None,
        may_differ: str | Sequence[str] = (),
    ) -> None:
        super().__init__(checkpoint, prefix)
        self.options = dict(weights=weights, grid=grid, may_differ=may_differ)

    def __call__(self, module: nn.Module) -> None:
        load_init_cfg(module, dict(checkpoint=self.checkpoint, prefix=self.prefix, **self.options))


def _load(filename: str, map_location: Any = None, logger: Any = 'current') -> dict:
    return load_checkpoint(filename, map_location)


def _install(initializer: type, load: Any) -> None:
    WEIGHT_INITIALIZERS.register_module('Pretrained', force=True, module=initializer)
    CheckpointLoader.load_checkpoint = load
