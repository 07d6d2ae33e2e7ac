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

from vt.errors import UserError
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

    Raises:
        UserError: the method ``attention`` of a part returns no tensor, or a shape that does not match its output.
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
    """Return what is wrong with the attention of a part, given its inputs and output; None if nothing is."""
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
    elif number:  # windows are part of the batch and may be padded; queries may be a subset of the tokens
        has_windows = shape[0] > number or hasattr(part, 'windows')
        fits = shape[0] % number == 0 and (has_windows or shape[2] <= output.shape[1])
    return None if fits else f'returns {shape}, but {form} must match its output {tuple(output.shape)}'
