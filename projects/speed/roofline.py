"""The roofline of a module: the time that its matrix operators take at a machine's ceilings.

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

from . import sdpa
from .ceilings import CeilingMeter, Ceilings
from .workload import Workload


@dataclass(frozen=True)
class Operator:
    """A convolution, matrix product or attention: multiply-adds, and bytes read and written, each tensor once."""

    kind: str
    flops: int
    bytes: int


class Roofline(CeilingMeter):
    """What :class:`projects.speed.comparison.Comparison` measures and computes beside the times of models."""

    def bound_seconds(self, workload: Workload, kind: str, ceilings: Ceilings) -> float:
        """Return the roofline of a step, see :func:`bound_seconds`."""
        return bound_seconds(workload_operators(workload, kind), ceilings)


def workload_operators(workload: Workload, kind: str) -> list['Operator']:
    """List the matrix operators of a step of ``'inference'`` or ``'training'``."""
    dtype = workload.setting.tensor_dtype
    return matrix_operators(workload.module, workload.inputs, dtype, kind == 'training', **workload.options)


def bound_seconds(operators: Iterable[Operator], ceilings: Ceilings) -> float:
    """Sum the times of matrix operators at the machine's ceilings, in seconds.

    The time of an operator is the larger of the time of its arithmetic at the ceiling of its kind (matrix products for
    attention) and the time to move its bytes at the rate of a copy. Other operators (normalisation, ReLU, pooling,
    resizing, additions, the optimizer) count as zero, as if fused. A module can be faster than this bound if operands
    stay in a cache between operators, or if matrix operators are fused.
    """

    def seconds(operator: Operator) -> float:
        rate = ceilings.convolution if operator.kind == 'convolution' else ceilings.matmul
        return max(2 * operator.flops / rate, operator.bytes / ceilings.copy)

    return sum(map(seconds, operators))


def matrix_operators(module: nn.Module, inputs: Any, dtype: torch.dtype, training: bool, **options) -> list[Operator]:
    """List the matrix operators of a call, and with ``training`` of its backward pass, on the meta device.

    A tokenizer or projector counts as one attention that reads its pixels once; a gradient of pixels that are both key
    and value also counts once. The loss is not included; it has no matrix operators. With ``training``, inputs that
    require gradients get them. ``dtype`` is the precision of all operands.
    """
    skeleton = copy.deepcopy(module).to(device='meta', dtype=dtype)
    skeleton.train(training)
    is_map = isinstance(inputs, Tensor)
    operands = [x.detach().to('meta', dtype).requires_grad_(x.requires_grad) for x in ([inputs] if is_map else inputs)]
    counter = _OperatorCounter()
    with torch.set_grad_enabled(training), use_path(sdpa.NAME), counter, _CountedAttentions(counter.operators):
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
    """Record the convolutions and matrix products among all operators below autograd."""

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
    """Count the bytes of tensors, shared memory only once; other arguments are ignored."""
    places = {}
    for x in tensors:
        if isinstance(x, Tensor):
            numel = int(np.prod([size for size, stride in zip(x.shape, x.stride()) if stride != 0]))  # not expanded
            places[StorageWeakRef(x.untyped_storage()), x.storage_offset(), numel] = numel * x.itemsize
    return sum(places.values())


class _CountedAttentions(TorchFunctionMode):
    """Replace scaled-dot-product attention, whose kernels and operators differ between devices."""

    def __init__(self, operators: list[Operator]) -> None:
        super().__init__()
        self.operators = operators

    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if function is scaled_dot_product_attention:
            return _CountedAttention.apply(*args[:3], self.operators)
        return function(*args, **(kwargs or {}))


class _CountedAttention(torch.autograd.Function):
    """Attention with correct shapes, without computation: two products forward and four backward."""

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
        flops = 2 * ctx.pairs * (query.shape[-1] + value.shape[-1])  # without recomputation
        operands = _bytes((query, key, value))  # read; gradients of the same size are written
        ctx.operators.append(Operator('attention', flops, 2 * operands + _bytes((gradient,))))
        return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value), None
