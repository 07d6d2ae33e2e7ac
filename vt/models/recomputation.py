"""Recompute blocks in the backward pass to save memory, without counting their batches twice."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from mmengine.optim import OptimWrapper, OptimWrapperDict
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


def recompute(block: nn.Module, *inputs: Any) -> Any:
    """Call a block of which only the inputs are kept; the backward pass calls it again."""
    # A compiled graph updates statistics once by itself, and PyTorch traces no contexts.
    contexts: dict[str, Any] = {} if torch.compiler.is_compiling() else dict(context_fn=partial(_contexts, block))
    return checkpoint(block, *inputs, use_reentrant=False, **contexts)


def _contexts(block: nn.Module) -> tuple[AbstractContextManager, AbstractContextManager]:
    return nullcontext(), statistics_kept(block.modules())


@contextmanager
def statistics_kept(parts: Iterable[nn.Module]) -> Iterator[Tensor]:
    """Keep the running statistics of normalisations inside the block; they normalise by their batch as before.

    Yields:
        The number of batches that they have normalised in the block, a tensor that counts on.
    """
    norms: list[Any] = [part for part in parts if part.training and getattr(part, 'track_running_stats', False)]
    before = [(norm.momentum, norm.num_batches_tracked) for norm in norms]
    number = torch.zeros((), dtype=torch.long, device=norms[0].running_mean.device if norms else None)
    for norm in norms:
        norm.momentum, norm.num_batches_tracked = 0.0, number
    try:
        yield number
    finally:
        for norm, (momentum, own) in zip(norms, before):
            norm.momentum, norm.num_batches_tracked = momentum, own


def keep_statistics_in_backward(wrapper: OptimWrapper | OptimWrapperDict, model: nn.Module) -> None:
    """Keep running statistics in backward passes, where blocks of any library may be recomputed.

    If the next backward pass recomputes no normalisation, the later ones are left alone.
    """
    norms = [part for part in model.modules() if getattr(part, 'track_running_stats', False)]
    for each in wrapper.values() if isinstance(wrapper, OptimWrapperDict) else [wrapper]:
        if norms:
            vars(each).setdefault('backward', partial(_backward, each, norms))


def _backward(wrapper: OptimWrapper, norms: list[nn.Module], loss: Tensor, **kwargs) -> None:
    with statistics_kept(norms) as number:
        type(wrapper).backward(wrapper, loss, **kwargs)
    if not number:
        del wrapper.backward
