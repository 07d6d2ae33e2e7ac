"""The path of the Triton kernels on NVIDIA GPUs: one pass over the maps, and one launch for all levels, per operation.

Triton is imported at the first use. Letters as in ``triton_kernels.py``.
"""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from importlib.util import find_spec
from operator import index
from typing import NamedTuple

import torch
from torch import Tensor

from .maps import in_shape_of, is_channel_major, num_channels, scaled, to_pixels
from .second_order import differentiable_project_gradients, differentiable_tokenize_gradients

DTYPES = (torch.bfloat16, torch.float16)
MIN_CAPABILITY = (8, 0)
MOST_LEVELS = 4  # of a launch
MAX_OFFSET = 2**31  # of a value in a sample: kernels compute it in 32 bits
MAX_SUMS = 4096  # C x L, with L a power of two: sums of gradients must fit into the registers of a program
FORWARD = dict(BLOCK_P=32, num_warps=4, num_stages=3)
BACKWARD = dict(BLOCK_P=16, num_warps=4, num_stages=2)
COMBINED = 1024  # values that a program of combine_kernel reads at once, from up to 64 splits
PROGRAMS_PER_PROCESSOR, INTERPRETED_PROGRAMS = 2, 6


def supports(x: Tensor, num_tokens: int, num_heads: int = 1) -> bool:
    """Whether the kernels support a map, or its pixels, on its device.

    They need Triton, an NVIDIA GPU of compute capability 8.0 or newer, one head, bf16 or fp16, channels_last, and sizes
    for which they are faster: C a power of two from 16 up to 256 with 16 tokens, 128 with 32, or 64 with 64.

    Args:
        x: a map ``(N, C, H, W)`` or its pixels ``(N, P, C)``.
        num_tokens: L.
        num_heads: heads of the attention.
    """
    if x.dtype not in DTYPES or num_heads != 1 or not _can_run(x.device.type, x.device.index) or x.numel() == 0:
        return False
    if x.numel() >= MAX_OFFSET * x.shape[0]:
        return False
    # index() makes sizes concrete that a compiler treats as dynamic.
    c, num_tokens = index(num_channels(x)), index(num_tokens)
    fits = c * sizes(c, num_tokens)['BLOCK_L'] <= MAX_SUMS and c >= 16 and c & (c - 1) == 0
    return fits and not is_channel_major(to_pixels(x))


def tokenize(x: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.tokenize`; :func:`supports` must be true, and all operands have one dtype."""
    queries = scaled(queries, scale)
    queries = queries.view(1, -1, *queries.shape[-2:])
    return _Tokenize.apply(queries, False, to_pixels(x))[0].squeeze(0)


def project(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0, residual: bool = False) -> Tensor:
    """As :func:`vt.ops.plain.project`; :func:`supports` must be true, and all operands have one dtype."""
    keys, values = scaled(keys, scale).transpose(0, 1), values.transpose(0, 1)
    return in_shape_of(x, _Project.apply(keys, values, residual, to_pixels(x))[0])


def project_onto(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.project_onto`; :func:`supports` must be true, and all operands have one dtype."""
    return project(x, keys, values, scale, residual=True)


def tokenize_levels(levels: Sequence[Tensor], queries: Tensor, scale: float = 1.0) -> tuple[Tensor, Sequence[Tensor]]:
    """As :func:`vt.ops.plain.tokenize_levels`, for up to four levels of pixels."""
    queries = scaled(queries, scale)
    if not torch.is_grad_enabled():
        return _tokenize(queries, levels)[0], levels
    tokens, *passed = _Tokenize.apply(queries, True, *levels)
    return tokens, [after if x.requires_grad else x for x, after in zip(levels, passed)]


def project_onto_levels(levels: Sequence[Tensor], keys: Tensor, values: Tensor, scale: float = 1.0) -> Sequence[Tensor]:
    """As :func:`vt.ops.plain.project_onto_levels`, for up to four levels of pixels."""
    keys = scaled(keys, scale)
    return (_Project.apply if torch.is_grad_enabled() else _project)(keys, values, True, *levels)


class _Tokenize(torch.autograd.Function):
    """Queries ``(levels, 1 or N, L, C)`` and pixels to tokens, followed by the pixels if ``passes_levels``.

    The backward pass needs the tokens as means over the pixels in fp32; 16 bits would not be accurate enough.
    """

    @staticmethod
    def forward(ctx, queries: Tensor, passes_levels: bool, *levels: Tensor) -> tuple[Tensor, ...]:
        tokens, exact, log_sums = _tokenize(queries, levels)
        ctx.save_for_backward(queries, exact, log_sums, *levels)
        ctx.set_materialize_grads(False)
        return (tokens, *levels) if passes_levels else (tokens,)

    @staticmethod
    def backward(ctx, gradient: Tensor | None, *passed: Tensor | None) -> tuple[Tensor | None, ...]:
        passed = passed or [None] * (len(ctx.needs_input_grad) - 2)
        if gradient is None:
            return None, None, *passed
        queries, exact, log_sums, *levels = ctx.saved_tensors
        if torch.is_grad_enabled():
            return differentiable_tokenize_gradients(queries, levels, gradient, passed)
        from .triton_kernels import tokenize_backward_kernel

        onto = any(other is not None for other in passed)
        if onto:
            passed = _contiguous([torch.zeros_like(x) if own is None else own for x, own in zip(levels, passed)])
        needed, of_queries = ctx.needs_input_grad[2:], ctx.needs_input_grad[0]
        levels, queries, gradient = _contiguous(levels), *_contiguous((queries, gradient))
        grads, places = [torch.empty_like(x) for x in levels], divide(levels, BACKWARD)
        parts = exact.new_empty(1, levels[0].shape[0], places.splits, *exact.shape[2:])
        tokens = queries, queries.shape[1], exact, log_sums, gradient
        others = _padded(passed if onto else levels)
        operands = (*_padded(levels), *places.sizes, places.span, *tokens, *others, *_padded(grads), parts)
        wanted = dict(ONTO=onto, OF_PIXELS=any(needed), OF_TOKENS=of_queries)
        grid = levels[0].shape[0], places.splits
        _launch(tokenize_backward_kernel, grid, operands, **wanted, **BACKWARD, **sizes(*exact.shape[:1:-1]))
        queries_grad = None
        if of_queries:
            queries_grad = _add_splits(parts, places, exact)[0].sum_to_size(queries.shape).to(queries.dtype)
        return queries_grad, None, *(grad if is_needed else None for grad, is_needed in zip(grads, needed))


class _Project(torch.autograd.Function):
    """Keys and values ``(levels, N, L, C)``, and pixels, to the projections."""

    @staticmethod
    def forward(ctx, keys: Tensor, values: Tensor, residual: bool, *levels: Tensor) -> tuple[Tensor, ...]:
        ctx.save_for_backward(keys, values, *levels)
        ctx.residual = residual
        ctx.set_materialize_grads(False)
        return _project(keys, values, residual, *levels)

    @staticmethod
    def backward(ctx, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if all(gradient is None for gradient in gradients):
            return None, None, None, *gradients
        keys, values, *levels = ctx.saved_tensors
        gradients = [torch.zeros_like(x) if own is None else own for x, own in zip(levels, gradients)]
        if torch.is_grad_enabled():
            return differentiable_project_gradients(keys, values, ctx.residual, levels, gradients)
        from .triton_kernels import project_backward_kernel

        levels, gradients = _contiguous(levels), _contiguous(gradients)
        keys, values = _contiguous((keys, values))
        needed, of_tokens = ctx.needs_input_grad[3:], any(ctx.needs_input_grad[:2])
        grads, places = [torch.empty_like(x) for x in levels], divide(levels, BACKWARD)
        parts = keys.new_empty(2, keys.shape[1], places.splits, *keys.shape[2:], dtype=torch.float32)
        pixels = *_padded(gradients), *_padded(grads)
        operands = (*_padded(levels), *places.sizes, places.span, keys, values, *pixels, *parts.unbind())
        constants = dict(RESIDUAL=ctx.residual, OF_PIXELS=any(needed), OF_TOKENS=of_tokens)
        grid = keys.shape[1], places.splits
        _launch(project_backward_kernel, grid, operands, **constants, **BACKWARD, **sizes(*keys.shape[:1:-1]))
        tokens_grads = _add_splits(parts, places, keys).unbind() if of_tokens else (None, None)
        return *tokens_grads, None, *(grad if is_needed else None for grad, is_needed in zip(grads, needed))


def _tokenize(queries: Tensor, levels: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the tokens, the same in fp32, and the logarithms of their sums of exponentials."""
    from .triton_kernels import combine_kernel, tokenize_kernel

    levels, queries = _contiguous(levels), queries.contiguous()
    (n, _, c), num_tokens, places = levels[0].shape, queries.shape[2], divide(levels, FORWARD)
    parts = queries.new_empty(n, places.splits, num_tokens, c, dtype=torch.float32)
    exact = parts.new_empty(len(levels), n, num_tokens, c)
    part_sums, log_sums = (whole.new_empty(whole.shape[:-1]) for whole in (parts, exact))
    operands = (*_padded(levels), *places.sizes, places.span, queries, queries.shape[1], parts, part_sums)
    _launch(tokenize_kernel, (n, places.splits), operands, **FORWARD, **sizes(c, num_tokens))
    tokens, blocks = torch.empty_like(exact, dtype=queries.dtype), combine_blocks(places.splits, c)
    operands = (parts, part_sums, *places.sizes, places.span, n, places.splits, tokens, exact, log_sums)
    grid = len(levels) * n, num_tokens, c // blocks['BLOCK_C']
    _launch(combine_kernel, grid, operands, C=c, L=num_tokens, **blocks)
    return tokens, exact, log_sums


def _project(keys: Tensor, values: Tensor, residual: bool, *levels: Tensor) -> tuple[Tensor, ...]:
    """Return the projections."""
    from .triton_kernels import project_kernel

    levels, keys, values = _contiguous(levels), *_contiguous((keys, values))
    read, places = [torch.empty_like(x) for x in levels], divide(levels, FORWARD)
    operands = (*_padded(levels), *places.sizes, places.span, keys, values, *_padded(read))
    grid = keys.shape[1], places.splits
    _launch(project_kernel, grid, operands, RESIDUAL=residual, **FORWARD, **sizes(*keys.shape[:1:-1]))
    return tuple(read)


def _add_splits(parts: Tensor, places: 'Places', like: Tensor) -> Tensor:
    """Add gradients of splits, ``(kinds, N, T, L, C)``, to those of tokens, ``(kinds, *like.shape)``, in its dtype."""
    from .triton_kernels import add_kernel

    (num_levels, n, num_tokens, c), blocks = like.shape, combine_blocks(places.splits, like.shape[-1])
    sums = like.new_empty(len(parts), *like.shape)
    operands = (parts, *places.sizes, places.span, n, places.splits, num_levels, sums)
    grid = len(parts) * num_levels * n, num_tokens, c // blocks['BLOCK_C']
    _launch(add_kernel, grid, operands, C=c, L=num_tokens, **blocks)
    return sums


def _launch(kernel, grid: tuple[int, ...], operands: tuple, **constants) -> None:
    """Run a kernel on the device of its first operand; a compiler selects the device itself."""
    with nullcontext() if torch.compiler.is_compiling() else torch.cuda.device_of(operands[0]):
        kernel[grid](*operands, **constants)


def _contiguous(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor.contiguous() for tensor in tensors]


def _padded(levels: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors for all levels of a kernel."""
    return [*levels, *[levels[0]] * (MOST_LEVELS - len(levels))]


class Places(NamedTuple):
    """How the pixels of all levels are divided among the programs of a sample.

    Attributes:
        sizes: pixels of each level, zero for those that are not there.
        span: pixels of a program, a multiple of a block.
        splits: number of programs of a sample.
    """

    sizes: tuple[int, ...]
    span: int
    splits: int


def divide(levels: Sequence[Tensor], how: dict[str, int]) -> Places:
    """Divide the pixels ``(N, P, C)`` of levels among as many programs as run at once, each with a block or more."""
    numbers = [x.shape[1] for x in levels]
    blocks = sum(-(-number // how['BLOCK_P']) for number in numbers)
    programs = max(1, num_programs(levels[0].device.type, levels[0].device.index) // levels[0].shape[0])
    span = -(-blocks // programs) * how['BLOCK_P']
    return Places((*numbers, *[0] * (MOST_LEVELS - len(levels))), span, sum(-(-number // span) for number in numbers))


def combine_blocks(splits: int, c: int) -> dict[str, int]:
    """Number of splits and channels that a program of ``combine_kernel`` reads at once."""
    block_s = 1 << min(6, (splits - 1).bit_length())
    return dict(BLOCK_C=min(c, COMBINED // block_s), BLOCK_S=block_s)


def sizes(c: int, num_tokens: int) -> dict[str, int]:
    """Return C, L, and L rounded up to a power of two, at least 16 as matrix products need."""
    return dict(C=c, L=num_tokens, BLOCK_L=max(16, 1 << (num_tokens - 1).bit_length()))


@cache
@torch.compiler.assume_constant_result
def num_programs(device: str, index: int | None) -> int:
    """Approximate number of programs of a kernel that run on a device at once; a few in the interpreter."""
    if device == 'cuda':
        return PROGRAMS_PER_PROCESSOR * torch.cuda.get_device_properties(index).multi_processor_count
    return INTERPRETED_PROGRAMS


@cache
@torch.compiler.assume_constant_result
def _can_run(device: str, index: int | None) -> bool:
    if find_spec('triton') is None or os.environ.get('TRITON_INTERPRET') == '1':  # in Python, on any device
        return find_spec('triton') is not None
    is_ours = device == 'cuda' and torch.version.cuda is not None
    return is_ours and torch.cuda.get_device_capability(index) >= MIN_CAPABILITY
