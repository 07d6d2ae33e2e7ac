"""Record the attention maps and tokens of a forward pass.

::

    with record_attention(model) as records:
        model(images)
    records['layer4.0.tokenizer'].attention  # (N, heads, L, H, W): attention of each token over the pixels
    records['layer4.0.tokenizer'].output     # (N, L, C_T): the tokens

There is no cost outside the ``with`` block. Inside it, forward hooks compute the attention weights, which the fast
paths do not materialise, and the plain path of :mod:`vt.ops` is used.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vt.ops import use_path


@dataclass
class Record:
    """Attention and output of one part in its last forward pass.

    Attributes:
        attention: ``(N, heads, L, H, W)`` for tokenizers and projectors, ``(N, heads, L, L)`` for relations.
        output: tokens ``(N, L, C_T)`` of a tokenizer or relation, map ``(N, C, H, W)`` of a projector.
        size: grid size that the part was called with; None if it takes no grid size.
    """

    attention: Tensor
    output: Tensor
    size: tuple[int, ...] | None = None


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Record]]:
    """Record all parts of ``model`` that have a method ``attention``, inside a ``with`` block.

    Args:
        model: any model that contains such parts.

    Yields:
        A dict from names of ``model.named_modules()`` to records of the last forward pass, with detached tensors.
    """
    records: dict[str, Record] = {}

    def recorder(name: str):
        @torch.no_grad()
        def record(part: Any, inputs: tuple, output: Tensor) -> None:
            size = next((tuple(each) for each in inputs if isinstance(each, (tuple, torch.Size))), None)
            records[name] = Record(part.attention(*inputs).detach(), output.detach(), size)

        return record

    parts = [(name, part) for name, part in model.named_modules() if inspect.ismethod(getattr(part, 'attention', None))]
    hooks = [part.register_forward_hook(recorder(name)) for name, part in parts]
    try:
        with use_path('plain'):
            yield records
    finally:
        for hook in hooks:
            hook.remove()
