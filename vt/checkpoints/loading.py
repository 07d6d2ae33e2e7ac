"""Let libraries load checkpoints by this package: weights-only within a block, and completely in a run."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mmengine.hooks import Hook
from mmengine.model import PretrainedInit as PlainPretrainedInit
from mmengine.registry import WEIGHT_INITIALIZERS
from mmengine.runner import Runner
from mmengine.runner.checkpoint import CheckpointLoader
from torch import nn

from vt.errors import UserError
from vt.registry import HOOKS

from .grids import Size
from .reading import TRUST, Checkpoint, is_trusted, load_checkpoint
from .weights import load_init_cfg, load_weights, unwrap

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
        print(f'warning: {TRUST}: code in checkpoints runs; use it only for files that you trust', file=sys.stderr)
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

    Args:
        checkpoint: path or address of the file.
        prefix: prefix of the part's names in the file; None to find it.
        weights: key of the state dict in the file, such as ``'state_dict_ema'``; by default the first one.
        grid: grid of the file's positions, (height, width) or (frames, height, width); by default it is inferred.
        may_differ: prefixes of names that may be missing, ignored or have another shape.
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


@HOOKS.register_module()
class WeightsMatchHook(Hook):
    """Load a checkpoint into the model of a run by :func:`.weights.load_weights`; the log says what was loaded.

    To resume or test, all tensors must fit. With ``load_from`` a training begins from the file.

    Args:
        whole: require all tensors with ``load_from``, too.
        weights, grid, may_differ: for ``load_from``, as in :class:`PretrainedInit`.
        adapts: adapt convolutions of the image to another number of channels than three.

    Raises:
        UserError: the checkpoint does not fit, or has no state to resume from.
    """

    priority = 'VERY_HIGH'

    def __init__(
        self,
        whole: bool = False,
        weights: str | None = None,
        grid: Size | None = None,
        may_differ: str | Sequence[str] = (),
        adapts: bool = False,
    ) -> None:
        self.whole = whole
        self.options: dict[str, Any] = dict(weights=weights, grid=grid, may_differ=may_differ, adapts=adapts)

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        held = Checkpoint(str(runner.cfg.get('load_from') or 'the checkpoint'), checkpoint)
        if runner.cfg.get('resume'):
            if not {'meta', 'message_hub', 'optimizer'} <= checkpoint.keys():
                advice = 'start from its weights with load_from instead of --resume'
                raise UserError(f'{held.name} contains no training state (optimizer, iteration): {advice}')
            # mmengine loads it again with averages and optimizer state, so nothing may be resized
            load_weights(runner.model, held, resizes=False)
            return
        if not hasattr(unwrap(runner.model), 'backbone') and not self.options['may_differ']:
            self.options['may_differ'] = ''  # the heads are unknown
        load_weights(runner.model, held, self.whole, verbose=True, **self.options)
        checkpoint['state_dict'] = unwrap(runner.model).state_dict()  # mmengine and other hooks load it again
        checkpoint.pop('ema_state_dict', None)  # averages start from the loaded weights
