"""The path of the Triton kernels on NVIDIA GPUs: one pass over the map per operation.

Triton is imported at the first use. Letters as in ``triton_kernels.py``.
"""

import os
from contextlib import nullcontext
from functools import cache
from importlib.util import find_spec
from operator import index

import torch
from torch import Tensor

from . import plain
from .maps import in_shape_of, is_channel_major, num_channels, scaled, to_pixels
from .second_order import differentiable_gradients, of_one_head

DTYPES = (torch.bfloat16, torch.float16)
MIN_CAPABILITY = (8, 0)
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
    return _Tokenize.apply(to_pixels(x), scaled(queries, scale))


def project(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0, residual: bool = False) -> Tensor:
    """As :func:`vt.ops.plain.project`; :func:`supports` must be true, and all operands have one dtype."""
    keys, values = scaled(keys, scale).squeeze(1), values.squeeze(1)
    return in_shape_of(x, _Project.apply(to_pixels(x), keys, values, residual))


def project_onto(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.project_onto`; :func:`supports` must be true, and all operands have one dtype."""
    return project(x, keys, values, scale, residual=True)


class _Tokenize(torch.autograd.Function):
    """Pixels ``(N, P, C)`` and queries to tokens ``(N, L, C)``.

    The backward pass needs the tokens as means over the pixels in fp32; 16 bits would not be accurate enough.
    """

    @staticmethod
    def forward(ctx, pixels: Tensor, queries: Tensor) -> Tensor:
        from .triton_kernels import combine_kernel, tokenize_kernel

        inputs = pixels, queries
        pixels, queries = pixels.contiguous(), queries.contiguous()
        (n, num_pixels, c), num_tokens, splits = pixels.shape, queries.shape[-2], count_splits(pixels, FORWARD)
        parts, exact = (pixels.new_empty(n, *some, num_tokens, c, dtype=torch.float32) for some in ((splits,), ()))
        part_sums, log_sums = (whole.new_empty(whole.shape[:-1]) for whole in (parts, exact))
        operands = (pixels, num_pixels, queries, queries.stride(0) * (queries.dim() == 3), parts, part_sums)
        _launch(tokenize_kernel, (n, splits), operands, **FORWARD, **sizes(c, num_tokens))
        tokens, blocks = torch.empty_like(exact, dtype=pixels.dtype), combine_blocks(splits, c)
        operands = (parts, part_sums, splits, tokens, exact, log_sums)
        _launch(combine_kernel, (n, num_tokens, c // blocks['BLOCK_C']), operands, C=c, L=num_tokens, **blocks)
        ctx.save_for_backward(*inputs, exact, log_sums)
        ctx.set_materialize_grads(False)
        return tokens

    @staticmethod
    def backward(ctx, gradient: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        if gradient is None:
            return None, None
        pixels, queries, exact, log_sums = ctx.saved_tensors
        if torch.is_grad_enabled():
            return differentiable_gradients(plain.tokenize, (pixels, queries), gradient)
        from .triton_kernels import tokenize_backward_kernel

        pixels, queries, gradient = pixels.contiguous(), queries.contiguous(), gradient.contiguous()
        (n, num_pixels, _), splits = pixels.shape, count_splits(pixels, BACKWARD)
        wanted = dict(zip(('OF_PIXELS', 'OF_TOKENS'), ctx.needs_input_grad))
        pixels_grad, parts = torch.empty_like(pixels), exact.new_empty(n, splits, *exact.shape[1:])
        tokens = (queries, queries.stride(0) * (queries.dim() == 3), exact, log_sums, gradient)
        operands = (pixels, num_pixels, *tokens, pixels_grad, parts)
        _launch(tokenize_backward_kernel, (n, splits), operands, **wanted, **BACKWARD, **sizes(*exact.shape[:0:-1]))
        queries_grad = parts.sum(1 if queries.dim() == 3 else (0, 1)).to(queries.dtype) if wanted['OF_TOKENS'] else None
        return pixels_grad if wanted['OF_PIXELS'] else None, queries_grad


class _Project(torch.autograd.Function):
    """Pixels ``(N, P, C)``, keys and values ``(N, L, C)`` to the projection, ``(N, P, C)``."""

    @staticmethod
    def forward(ctx, pixels: Tensor, keys: Tensor, values: Tensor, residual: bool) -> Tensor:
        from .triton_kernels import project_kernel

        ctx.save_for_backward(pixels, keys, values)
        ctx.residual = residual
        ctx.set_materialize_grads(False)
        pixels, keys, values = pixels.contiguous(), keys.contiguous(), values.contiguous()
        read, grid = torch.empty_like(pixels), (pixels.shape[0], count_splits(pixels, FORWARD))
        operands = (pixels, pixels.shape[1], keys, values, read)
        _launch(project_kernel, grid, operands, RESIDUAL=residual, **FORWARD, **sizes(*keys.shape[:0:-1]))
        return read

    @staticmethod
    def backward(ctx, gradient: Tensor | None) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        if gradient is None:
            return None, None, None, None
        if torch.is_grad_enabled():
            function = of_one_head(plain.project_onto if ctx.residual else plain.project)
            return *differentiable_gradients(function, ctx.saved_tensors, gradient), None
        from .triton_kernels import project_backward_kernel

        pixels, keys, values, gradient = (tensor.contiguous() for tensor in (*ctx.saved_tensors, gradient))
        (n, num_pixels, _), splits = pixels.shape, count_splits(pixels, BACKWARD)
        wanted = dict(OF_PIXELS=ctx.needs_input_grad[0], OF_TOKENS=any(ctx.needs_input_grad[1:]))
        pixels_grad = torch.empty_like(pixels)
        parts = pixels.new_empty(2, n, splits, *keys.shape[1:], dtype=torch.float32)  # of keys, of values
        operands = (pixels, num_pixels, keys, values, gradient, pixels_grad, *parts.unbind())
        constants = dict(RESIDUAL=ctx.residual, **wanted, **BACKWARD, **sizes(*keys.shape[:0:-1]))
        _launch(project_backward_kernel, (n, splits), operands, **constants)
        tokens_grads = parts.sum(2).to(pixels.dtype).unbind() if wanted['OF_TOKENS'] else (None, None)
        return pixels_grad if wanted['OF_PIXELS'] else None, *tokens_grads, None


def _launch(kernel, grid: tuple[int, ...], operands: tuple, **constants) -> None:
    """Run a kernel on the device of its first operand; a compiler selects the device itself."""
    with nullcontext() if torch.compiler.is_compiling() else torch.cuda.device_of(operands[0]):
        kernel[grid](*operands, **constants)


def count_splits(pixels: Tensor, how: dict[str, int]) -> int:
    """Number of programs per sample of pixels ``(N, P, C)``: at most as many as run at once, each with a block."""
    most = num_programs(pixels.device.type, pixels.device.index) // pixels.shape[0]
    return max(1, min(most, -(-pixels.shape[1] // how['BLOCK_P'])))


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
