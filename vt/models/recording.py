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
from typing import Any

import torch
from torch import Tensor, nn

from vt.errors import UserError
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

    Raises:
        UserError: a part's method ``attention`` returns no tensor, or one whose shape does not fit the part's output.
    """
    records: dict[str, Record] = {}

    def recorder(name: str):
        @torch.no_grad()
        def record(part: nn.Module, inputs: tuple, output: Tensor) -> None:
            size = next((tuple(each) for each in inputs if isinstance(each, (tuple, torch.Size))), None)
            attention = part.attention(*inputs)
            if problem := _check_shape(part, attention, inputs, output):
                raise UserError(f'{name or "the model"}, a {type(part).__name__}: its method attention {problem}')
            records[name] = Record(attention.detach(), output.detach(), size)

        return record

    parts = [(name, part) for name, part in model.named_modules() if inspect.ismethod(getattr(part, 'attention', None))]
    hooks = [part.register_forward_hook(recorder(name)) for name, part in parts]
    try:
        with use_path('plain'):
            yield records
    finally:
        for hook in hooks:
            hook.remove()


def _check_shape(part: nn.Module, attention: Any, inputs: tuple, output: Tensor) -> str | None:
    """What is wrong with what a part says of its attention, given its inputs and its output."""
    size = next(
        (tuple(each.shape[2:]) for each in (*inputs, output) if isinstance(each, Tensor) and each.ndim == 4), None
    )
    form = '(N, heads, L, L)' if size is None else '(N, heads, L, H, W)'
    if not isinstance(attention, Tensor) or attention.ndim != (4 if size is None else 5):
        found = tuple(attention.shape) if isinstance(attention, Tensor) else type(attention).__name__
        return f'returns {found}, and {form} is needed'
    shape, number, fits = tuple(attention.shape), len(output), True
    if size is not None:
        fits = shape[0] == number and shape[3:] == size
    elif number:  # windows, which may be padded, can be images of their own; some tokens alone may ask
        has_windows = shape[0] > number or hasattr(part, 'windows')
        fits = shape[0] % number == 0 and (has_windows or shape[2] <= output.shape[1])
    return None if fits else f'returns {shape}, {form}, which does not fit its output {tuple(output.shape)}'
