"""The path of the Triton kernels on NVIDIA GPUs: one pass over the maps, and one launch for all levels, per operation.

Triton is imported at the first use. Letters as in ``triton_kernels.py``.
"""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from importlib.util import find_spec
from operator import index

import torch
from torch import Tensor

from .maps import Gradients, Levels, is_channel_major, num_channels, to_pixels

DTYPES = (torch.bfloat16, torch.float16)
MIN_CAPABILITY = (8, 0)
MOST_LEVELS = 4  # of a launch
MAX_OFFSET = 2**31  # of a value in a sample: kernels compute it in 32 bits
MAX_SUMS = 4096  # C x L, with L a power of two: sums of gradients must fit into the registers of a program
FORWARD = dict(BLOCK_P=32, num_warps=4, num_stages=3)
BACKWARD = dict(BLOCK_P=16, num_warps=4, num_stages=2)
COMBINED = 1024  # values that a program of combine_kernel reads at once, from up to 64 splits
PROGRAMS_PER_PROCESSOR, INTERPRETED_PROGRAMS = 2, 4


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


def tokenize(queries: Tensor, levels: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Compute tokens; arguments and results of the four functions as in :mod:`vt.ops.functions`.

    The gradients need the tokens as means over the pixels in fp32; 16 bits would not be accurate enough.
    """
    from .triton_kernels import tokenize_kernel

    levels, queries = _contiguous(levels), queries.contiguous()
    (n, _, c), num_tokens, (places, splits) = levels[0].shape, queries.shape[2], divide(levels, FORWARD)
    parts = queries.new_empty(1, n, splits, num_tokens, c, dtype=torch.float32)
    exact = parts.new_empty(len(levels), n, num_tokens, c)
    part_sums, log_sums = (whole.new_empty(whole.shape[:-1]) for whole in (parts, exact))
    operands = (*_padded(levels), *places, queries, queries.shape[1], parts, part_sums)
    _launch(tokenize_kernel, (n, splits), operands, **FORWARD, **sizes(c, num_tokens))
    tokens = torch.empty_like(exact, dtype=queries.dtype)
    _combine(parts, places, tokens, part_sums, exact, log_sums)
    return tokens, exact, log_sums


def tokenize_gradients(
    queries: Tensor, levels: Levels, saved: Levels, gradient: Tensor, passed: Gradients, needs: Sequence[bool]
) -> Gradients:
    """Compute gradients of :func:`tokenize`."""
    from .triton_kernels import tokenize_backward_kernel

    exact, log_sums = saved
    onto = any(other is not None for other in passed)
    if onto:
        filled = [torch.zeros_like(x) if other is None else other for x, other in zip(levels, passed)]
        passed = tuple(_contiguous(filled))
    levels, queries, gradient = _contiguous(levels), *_contiguous((queries, gradient))
    found, (places, splits), n = [torch.empty_like(x) for x in levels], divide(levels, BACKWARD), exact.shape[1]
    parts, sums = (exact.new_empty(1, n, splits, *some, exact.shape[3]) for some in (exact.shape[2:3], (1,)))
    tokens, others = (queries, queries.shape[1], exact, log_sums, gradient), passed if onto else levels
    operands = (*_padded(levels), *places, *tokens, *_padded(others), *_padded(found), parts, sums)
    _launch(tokenize_backward_kernel, (n, splits), operands, ONTO=onto, **BACKWARD, **sizes(*exact.shape[:1:-1]))
    of_queries = _combine(parts, places, torch.empty_like(exact)).sum_to_size(queries.shape).to(queries.dtype)
    of_biases = (
        _combine(sums, places, exact.new_empty(len(levels), n, 1, exact.shape[3])).sum((1, 2)) if needs[1] else None
    )
    return _only(needs, of_queries, of_biases, *found)


def project(keys: Tensor, values: Tensor, residual: bool, levels: Levels) -> tuple[list[Tensor], list[Tensor]]:
    """Compute projections."""
    from .triton_kernels import project_kernel

    levels, keys, values = _contiguous(levels), *_contiguous((keys, values))
    read, (places, splits) = [torch.empty_like(x) for x in levels], divide(levels, FORWARD)
    operands = (*_padded(levels), *places, keys, values, *_padded(read))
    constants = dict(RESIDUAL=residual, **FORWARD)
    _launch(project_kernel, (keys.shape[1], splits), operands, **constants, **sizes(*keys.shape[:1:-1]))
    return read, []


def project_gradients(
    keys: Tensor, values: Tensor, residual: bool, levels: Levels, saved: Levels, grads: Levels, needs: Sequence[bool]
) -> Gradients:
    """Compute gradients of :func:`project`."""
    from .triton_kernels import project_backward_kernel

    levels, grads, keys, values = _contiguous(levels), _contiguous(grads), *_contiguous((keys, values))
    found, (places, splits), n = [torch.empty_like(x) for x in levels], divide(levels, BACKWARD), keys.shape[1]
    parts = keys.new_empty(2, n, splits, *keys.shape[2:], dtype=torch.float32)
    pixels = *_padded(grads), *_padded(found)
    operands = (*_padded(levels), *places, keys, values, *pixels, *parts.unbind())
    constants = dict(RESIDUAL=residual, **BACKWARD)
    _launch(project_backward_kernel, (n, splits), operands, **constants, **sizes(*keys.shape[:1:-1]))
    return _only(needs, *_combine(parts, places, keys.new_empty(2, *keys.shape)), *found)


def _only(needs: Sequence[bool], *gradients: Tensor | None) -> Gradients:
    return tuple(gradient if is_needed else None for gradient, is_needed in zip(gradients, needs))


def _combine(parts: Tensor, places: tuple[int, ...], results: Tensor, *weights: Tensor) -> Tensor:
    """Combine the results of splits, ``(kinds, N, T, L, C)``, as in ``combine_kernel``, with or without weights."""
    from .triton_kernels import combine_kernel

    _, n, splits, num_tokens, c = parts.shape
    blocks = combine_blocks(splits, c)
    part_sums, *others = weights or (parts, results, results)
    operands = (parts, part_sums, *places, n, splits, results.shape[-4], results, *others)
    grid = results.shape[:-2].numel(), num_tokens, c // blocks['BLOCK_C']
    _launch(combine_kernel, grid, operands, WEIGHTED=len(weights) > 0, C=c, L=num_tokens, **blocks)
    return results


def _launch(kernel, grid: tuple[int, ...], operands: tuple, **constants) -> None:
    """Run a kernel on the device of its first operand; a compiler selects the device itself."""
    with nullcontext() if torch.compiler.is_compiling() else torch.cuda.device_of(operands[0]):
        kernel[grid](*operands, **constants)


def _contiguous(tensors: Levels) -> list[Tensor]:
    return [tensor.contiguous() for tensor in tensors]


def _padded(levels: Levels) -> list[Tensor]:
    """Return tensors for all levels of a kernel."""
    return [*levels, *[levels[0]] * (MOST_LEVELS - len(levels))]


def divide(levels: Levels, how: dict[str, int]) -> tuple[tuple[int, ...], int]:
    """Divide the pixels ``(N, P, C)`` of levels among as many programs as run at once, each with a block or more.

    Returns:
        The pixels of each of the levels of a kernel, followed by those of a program; and the programs of a sample.
    """
    numbers = [x.shape[1] for x in levels]
    blocks = sum(-(-number // how['BLOCK_P']) for number in numbers)
    programs = max(1, num_programs(levels[0].device.type, levels[0].device.index) // levels[0].shape[0])
    span = -(-blocks // programs) * how['BLOCK_P']
    splits = sum(-(-number // span) for number in numbers)
    return (*numbers, *[0] * (MOST_LEVELS - len(numbers)), span), splits


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
