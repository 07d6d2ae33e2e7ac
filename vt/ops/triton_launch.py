"""Launch the Triton kernels: number of splits, buffers, and what is put together after them.

Letters as in ``triton_kernels.py``.
"""

import math
from collections.abc import Callable
from functools import cache

import torch
import triton
from torch import Tensor

from .maps import is_channel_major, new_map
from .triton_kernels import combine_kernel
from .triton_sizes import WIDE_BLOCK_C, block_c, block_l, is_wide, next_power_of_2
from .triton_tuning import (
    project_attention_backward_kernel,
    project_backward_kernel,
    project_kernel,
    tokenize_attention_backward_kernel,
    tokenize_backward_kernel,
    tokenize_kernel,
)

PROGRAMS_PER_PROCESSOR = 2
INTERPRETED_PROGRAMS = 6  # where there is no device to ask
COMBINED_CHANNELS = 32  # channels that a program of combine_kernel takes


@cache
def num_processors(index: int | None) -> int:
    return torch.cuda.get_device_properties(index).multi_processor_count


def num_splits(pixels: Tensor) -> int:
    """S, how many programs share a sample, so that all of them together fill the device once."""
    num_samples, num_pixels, _ = pixels.shape
    programs = PROGRAMS_PER_PROCESSOR * num_processors(pixels.device.index) if pixels.is_cuda else INTERPRETED_PROGRAMS
    return max(1, min(programs // num_samples, math.ceil(num_pixels / 32)))


def precision(pixels: Tensor) -> str:
    """How products of fp32 are made: exactly, unless PyTorch is told to use TF32."""
    return 'tf32' if torch.backends.cuda.matmul.fp32_precision == 'tf32' else 'ieee'


def sizes(pixels: Tensor, num_tokens: int) -> dict:
    """The constants that every tuned kernel takes."""
    _, num_pixels, num_channels = pixels.shape
    channel_major = is_channel_major(pixels)
    return dict(
        C=num_channels,
        L=num_tokens,
        PIXEL_MAJOR=not channel_major,
        ALIGNMENT=math.gcd(num_pixels, 16) if channel_major else 1,
        PRECISION=precision(pixels),
        BLOCK_C=block_c(num_channels),
        BLOCK_L=block_l(num_tokens, pixels.itemsize),
    )


def launch(
    kernel: Callable, grid: tuple | Callable, pixels: Tensor, *others: Tensor, scale: float, **constants
) -> None:
    """Run a tuned kernel on the device of ``pixels``."""
    num_samples, num_pixels, _ = pixels.shape
    size_class = next_power_of_2(num_samples * num_pixels)
    with torch.cuda.device_of(pixels):
        kernel[grid](pixels, *others, num_pixels, size_class, scale, **constants)


def tokenize(pixels: Tensor, queries: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Tokens ``(N, L, C)`` and the base-two logarithm of each token's sum of exponentials, ``(N, L)``, in fp32."""
    pixels, queries = in_order_of(pixels, pixels), queries.contiguous()
    (n, _, c), num_tokens, splits = pixels.shape, queries.shape[-2], num_splits(pixels)
    tokens = pixels.new_empty(n, splits, num_tokens, c, dtype=torch.float32)
    log_sums = pixels.new_empty(n, splits, num_tokens, dtype=torch.float32)
    constants = sizes(pixels, num_tokens) | dict(SHARED_QUERIES=queries.dim() == 2)
    launch(tokenize_kernel, (n, splits), pixels, queries, tokens, log_sums, scale=scale, **constants)
    if splits == 1:
        return tokens.squeeze(1), log_sums.squeeze(1)
    return combine(tokens, log_sums)


def combine(split_tokens: Tensor, split_log_sums: Tensor) -> tuple[Tensor, Tensor]:
    """The tokens and logarithms of all pixels from those of the splits, ``(N, S, L, C)`` and ``(N, S, L)``."""
    n, splits, num_tokens, c = split_tokens.shape
    tokens = split_tokens.new_empty(n, num_tokens, c)
    log_sums = split_log_sums.new_empty(n, num_tokens)
    grid = (n, num_tokens, triton.cdiv(c, COMBINED_CHANNELS))
    blocks = dict(BLOCK_S=next_power_of_2(splits), BLOCK_C=COMBINED_CHANNELS)
    with torch.cuda.device_of(split_tokens):
        combine_kernel[grid](split_tokens, split_log_sums, tokens, log_sums, splits, C=c, L=num_tokens, **blocks)
    return tokens, log_sums


def tokenize_backward(
    token_gradients: Tensor, pixels: Tensor, queries: Tensor, tokens: Tensor, log_sums: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    """Gradients of pixels ``(N, P, C)`` and of queries, in their shape, from those of the tokens ``(N, L, C)``."""
    pixels, queries, token_gradients = in_order_of(pixels, pixels), queries.contiguous(), token_gradients.contiguous()
    operands = (pixels, queries, tokens, log_sums, token_gradients)
    shared = queries.dim() == 2
    constants = sizes(pixels, queries.shape[-2]) | dict(SHARED_QUERIES=shared)
    if is_wide(pixels.shape[2], queries.shape[-2], pixels.itemsize):
        both = attention_and_logit_gradients(tokenize_attention_backward_kernel, operands, scale, constants)
        pixel_gradients = spread(both, torch.cat([token_gradients, queries.expand_as(tokens)], dim=1), pixels)
        query_gradients = both[..., constants['L'] :].transpose(1, 2) @ pixels  # N, L, C
    else:
        pixel_gradients = new_map(pixels)
        sums = split_sums(pixels, constants['L'], in_fp32=shared)
        constants |= dict(RELOAD=pixels.itemsize == 4)
        outputs = (pixel_gradients, sums)
        launch(tokenize_backward_kernel, sums.shape[:2], *operands, *outputs, scale=scale, **constants)
        query_gradients = sum_of_splits(sums)
    if shared:
        query_gradients = query_gradients.sum(0, dtype=torch.float32)
    return pixel_gradients, query_gradients.to(queries.dtype)


def project(pixels: Tensor, keys: Tensor, values: Tensor, scale: float, residual: bool) -> Tensor:
    """What pixels ``(N, P, C)`` read from keys and values ``(N, L, C)``, and with ``residual`` themselves added."""
    pixels, keys, values = in_order_of(pixels, pixels), keys.contiguous(), values.contiguous()
    read = new_map(pixels)
    grid = (pixels.shape[0], num_splits(pixels))
    constants = sizes(pixels, keys.shape[1]) | dict(RESIDUAL=residual)
    launch(project_kernel, grid, pixels, keys, values, read, scale=scale, **constants)
    return read


def project_backward(
    read_gradients: Tensor, pixels: Tensor, keys: Tensor, values: Tensor, scale: float, residual: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of pixels ``(N, P, C)``, keys and values ``(N, L, C)`` from those of what was read, ``(N, P, C)``."""
    pixels, keys, values = in_order_of(pixels, pixels), keys.contiguous(), values.contiguous()
    read_gradients = in_order_of(pixels, read_gradients)
    operands = (pixels, keys, values, read_gradients)
    constants = sizes(pixels, keys.shape[1])
    if is_wide(pixels.shape[2], keys.shape[1], pixels.itemsize):
        both = attention_and_logit_gradients(project_attention_backward_kernel, operands, scale, constants)
        attention, logit_gradients = both.chunk(2, dim=2)  # N, P, L each
        pixel_gradients = spread(logit_gradients, keys, pixels, read_gradients if residual else None)
        return pixel_gradients, logit_gradients.transpose(1, 2) @ pixels, attention.transpose(1, 2) @ read_gradients
    pixel_gradients = new_map(pixels)
    key_gradients, value_gradients = (split_sums(pixels, keys.shape[1]) for _ in range(2))
    outputs = (pixel_gradients, key_gradients, value_gradients)
    constants |= dict(RESIDUAL=residual, RELOAD=pixels.itemsize == 4)
    launch(project_backward_kernel, key_gradients.shape[:2], *operands, *outputs, scale=scale, **constants)
    return pixel_gradients, *(sum_of_splits(x).to(pixels.dtype) for x in (key_gradients, value_gradients))


def in_order_of(pixels: Tensor, gradients: Tensor) -> Tensor:
    """Gradients of a map, or the map itself, dense and in the map's memory order; copied only where they aren't."""
    if is_channel_major(pixels):
        return gradients.transpose(1, 2).contiguous().transpose(1, 2)
    return gradients.contiguous()


def split_sums(pixels: Tensor, num_tokens: int, in_fp32: bool = False) -> Tensor:
    """Room for the sums over each split's pixels, ``(N, S, L, C)``, in fp32 where more is to be added up."""
    (n, _, c), splits = pixels.shape, num_splits(pixels)
    dtype = torch.float32 if in_fp32 or splits > 1 else pixels.dtype
    return pixels.new_empty(n, splits, num_tokens, c, dtype=dtype)


def sum_of_splits(sums: Tensor) -> Tensor:
    """``(N, S, L, C)`` to ``(N, L, C)``."""
    return sums.squeeze(1) if sums.shape[1] == 1 else sums.sum(1)


def attention_and_logit_gradients(kernel: Callable, operands: tuple, scale: float, constants: dict) -> Tensor:
    """Attention and the gradients of its logits, side by side, ``(N, P, 2 L)``."""
    pixels = operands[0]
    n, num_pixels, _ = pixels.shape
    both = pixels.new_empty(n, num_pixels, 2 * constants['L'])
    constants = constants | dict(BLOCK_C=WIDE_BLOCK_C)
    launch(
        kernel, lambda meta: (n, triton.cdiv(num_pixels, meta['BLOCK_P'])), *operands, both, scale=scale, **constants
    )
    return both


def spread(weights: Tensor, tokens: Tensor, pixels: Tensor, added: Tensor | None = None) -> Tensor:
    """``(N, P, K) @ (N, K, C)``, plus a map, in the memory order of ``pixels``."""
    if is_channel_major(pixels):
        weights, tokens = tokens.transpose(1, 2), weights.transpose(1, 2)
        added = added if added is None else added.transpose(1, 2)
    product = weights @ tokens if added is None else torch.baddbmm(added, weights, tokens)
    return product.transpose(1, 2) if is_channel_major(pixels) else product
