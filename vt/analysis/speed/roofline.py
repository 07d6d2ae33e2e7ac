"""The matrix operators of a module, and the time that they would take at a machine's ceilings.

Letters: N batch, h heads, L queries, S keys, E and E_v channels of a key and of a value.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from vt.ops import use_path

from .ceilings import Ceilings


@dataclass(frozen=True)
class Operator:
    """A convolution, matmul or attention: multiply-adds, and bytes that it must read and write, each tensor once."""

    kind: str
    flops: int
    bytes: int


def bound_seconds(operators: Iterable[Operator], ceilings: Ceilings) -> float:
    """The time of matrix operators one after the other, each alone at the machine's ceilings.

    An operator takes at least the time of its arithmetic at the ceiling of its kind (attention at the matrix product's)
    and at least the time to move its bytes at the copy's rate; the longer of the two counts. What is no matrix operator
    (normalisation, ReLU, pooling, resizing, additions, the optimizer's update) counts nothing, as if it were fused into
    one that is. A module that keeps its operands in a cache from one operator to the next, or that fuses two matrix
    operators, can beat this bound.
    """

    def seconds(operator: Operator) -> float:
        rate = ceilings.convolution if operator.kind == 'convolution' else ceilings.matmul
        return max(2 * operator.flops / rate, operator.bytes / ceilings.copy)

    return sum(map(seconds, operators))


def matrix_operators(module: nn.Module, inputs: Any, dtype: torch.dtype, training: bool, **options) -> list[Operator]:
    """The matrix operators of one call, or of a call and its backward pass, counted without computing anything.

    A tokenizer or a projector counts as one attention, which reads its pixels once; its gradient to pixels that are
    key and value in one counts once, too. Counted from the module's outputs: a loss has no matrix operators. With
    ``training`` the inputs that require gradients get them; ``dtype`` is the precision of all operands.
    """
    skeleton = copy.deepcopy(module).to(device='meta', dtype=dtype)
    skeleton.train(training)
    is_map = isinstance(inputs, Tensor)
    operands = [x.detach().to('meta', dtype).requires_grad_(x.requires_grad) for x in ([inputs] if is_map else inputs)]
    counter = _OperatorCounter()
    with torch.set_grad_enabled(training), use_path('sdpa'), counter, _CountedAttentions(counter.operators):
        result = skeleton(operands[0] if is_map else tuple(operands), **options)
        outputs = [out for out in _flatten(result) if out.requires_grad or not training]
        if training:
            torch.autograd.backward(outputs, [torch.empty_like(out) for out in outputs])
    return counter.operators


def _flatten(outputs: Any) -> Iterator[Tensor]:
    if isinstance(outputs, Tensor):
        yield outputs
    else:
        for out in outputs:
            yield from _flatten(out)


class _OperatorCounter(TorchDispatchMode):
    """Sees every operator below autograd and keeps the convolutions and matrix products."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[Operator] = []

    def __torch_dispatch__(self, operator: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        out = operator(*args, **(kwargs or {}))
        count = flop_registry.get(operator.overloadpacket)
        if count is not None:
            kind = 'convolution' if 'convolution' in operator.overloadpacket.__name__ else 'matmul'
            outputs = out if isinstance(out, (tuple, list)) else (out,)
            self.operators.append(
                Operator(kind, count(*args, **(kwargs or {}), out_val=out) // 2, _bytes((*args, *outputs)))
            )
        return out


def _bytes(tensors: Iterable[Any]) -> int:
    """Bytes of tensors, of each place in memory once; what is no tensor is passed over."""
    places = {}
    for x in tensors:
        if isinstance(x, Tensor):
            numel = int(np.prod([size for size, stride in zip(x.shape, x.stride()) if stride != 0]))  # not expanded
            places[StorageWeakRef(x.untyped_storage()), x.storage_offset(), numel] = numel * x.itemsize
    return sum(places.values())


class _CountedAttentions(TorchFunctionMode):
    """Takes the place of scaled-dot-product attention, whose kernels and so whose operators differ by device."""

    def __init__(self, operators: list[Operator]) -> None:
        super().__init__()
        self.operators = operators

    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if function is scaled_dot_product_attention:
            return _CountedAttention.apply(*args[:3], self.operators)
        return function(*args, **(kwargs or {}))


class _CountedAttention(torch.autograd.Function):
    """Attention of the right shapes that computes nothing: two products forward and four backward."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, operators: list[Operator]) -> Tensor:
        out = query.new_empty(*query.shape[:-1], value.shape[-1])  # N, h, L, E_v
        pairs = query.shape[:-1].numel() * key.shape[-2]  # N h L S
        ctx.save_for_backward(query, key, value)
        ctx.operators, ctx.pairs = operators, pairs
        flops = pairs * (query.shape[-1] + value.shape[-1])
        operators.append(Operator('attention', flops, _bytes((query, key, value, out))))
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        query, key, value = ctx.saved_tensors
        flops = 2 * ctx.pairs * (query.shape[-1] + value.shape[-1])  # none is computed twice
        operands = _bytes((query, key, value))  # read, and as much written: the gradients
        ctx.operators.append(Operator('attention', flops, 2 * operands + _bytes((gradient,))))
        return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value), None
