"""Reading the attention maps and tokens of a forward pass.

::

    with record_attention(model) as records:
        model(images)
    records['layer4.0.tokenizer'].attention  # (N, heads, L, H, W): where each token looked
    records['layer4.0.tokenizer'].output     # (N, L, C_T): the tokens it made

Nothing is stored, and nothing computed, outside the ``with`` block: a recorder is a set of forward hooks, which ask the
parts for the attention weights, which the fast paths never materialise. Inside it the plain path computes.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vt.ops import use_path


@dataclass
class Record:
    """What one part did in its last forward pass.

    Attributes:
        attention: tokenizer and projector ``(N, heads, L, H, W)``, relation ``(N, heads, L, L)``.
        output: tokens ``(N, L, C_T)`` of a tokenizer or relation, the map ``(N, C, H, W)`` of a projector.
        size: of the grid of tokens that the part was called with; None for one that takes none.
    """

    attention: Tensor
    output: Tensor
    size: tuple[int, ...] | None = None


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Record]]:
    """Record every part of ``model`` that attends, by its name in ``model.named_modules()``.

    The tensors are detached. A part that runs twice keeps its last pass.
    """
    records: dict[str, Record] = {}

    def recorder(name: str):
        @torch.no_grad()
        def record(part: nn.Module, inputs: tuple, output: Tensor) -> None:
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
