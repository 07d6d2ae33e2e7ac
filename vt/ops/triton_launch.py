"""Launch the Triton kernels: buffers, splits, and what is put together after them.

Letters as in ``triton_kernels.py``.
"""

from collections.abc import Callable
from functools import cache

import torch
import triton
from torch import Tensor

from .maps import is_channel_major, new_map
from .triton_backward_kernels import project_backward_kernel, tokenize_backward_kernel
from .triton_kernels import combine_kernel, project_kernel, tokenize_kernel
from .triton_sizes import BACKWARD, FORWARD, Choice, Plan, alignment, block_c, block_l, next_power_of_2, plan

COMBINED_CHANNELS = 32  # channels that a program of combine_kernel takes
TUNING_KEY = ['C', 'L', 'PIXEL_MAJOR', 'ALIGNMENT', 'size_class']


def sizes(pixels: Tensor, num_tokens: int) -> dict:
    """The constants that every kernel over pixels takes."""
    return dict(
        C=pixels.shape[2],
        L=num_tokens,
        PIXEL_MAJOR=not is_channel_major(pixels),
        ALIGNMENT=alignment(pixels),
        BLOCK_C=block_c(pixels.shape[2]),
        BLOCK_L=block_l(num_tokens, pixels.itemsize),
    )


@cache
def tuned(kernel: triton.JITFunction, choices: tuple[Choice, ...]) -> triton.runtime.Autotuner:
    """A kernel that takes the fastest of some choices, measured once for each size and kept in Triton's cache."""
    configs = [
        triton.Config({'BLOCK_P': choice.BLOCK_P}, num_warps=choice.num_warps, num_stages=choice.num_stages)
        for choice in choices
    ]
    return triton.autotune(configs, TUNING_KEY, cache_results=True)(kernel)


def launch(kernel: Callable, how: Plan, pixels: Tensor, *others: Tensor | float, **constants) -> None:
    """Run a kernel on the device of ``pixels``."""
    num_samples, num_pixels, _ = pixels.shape
    if len(how.choices) > 1:
        kernel = tuned(kernel, how.choices)
    else:
        constants |= how.choices[0]._asdict()
    size_class = next_power_of_2(num_samples * num_pixels)
    with torch.cuda.device_of(pixels):
        kernel[num_samples, how.splits](pixels, *others, num_pixels, size_class, **constants)


def tokenize(pixels: Tensor, queries: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Tokens ``(N, L, C)`` and the base-two logarithm of each token's sum of exponentials, ``(N, L)``, in fp32."""
    pixels, queries = in_order_of(pixels, pixels), queries.contiguous()
    (n, _, c), num_tokens, how = pixels.shape, queries.shape[-2], plan(pixels, FORWARD)
    tokens = pixels.new_empty(n, how.splits, num_tokens, c, dtype=torch.float32)
    log_sums = pixels.new_empty(n, how.splits, num_tokens, dtype=torch.float32)
    numbers = dict(scale=scale, query_stride=stride_of(queries))
    launch(tokenize_kernel, how, pixels, queries, tokens, log_sums, **numbers, **sizes(pixels, num_tokens))
    if how.splits == 1:
        return tokens.squeeze(1), log_sums.squeeze(1)
    return combine(tokens, log_sums)


def stride_of(queries: Tensor) -> int:
    """From one sample's queries to the next one's: L x C, or 0 for ``(L, C)``."""
    return queries[0].numel() if queries.dim() == 3 else 0


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
    shared, how = queries.dim() == 2, plan(pixels, BACKWARD)
    operands = (pixels, queries, tokens, log_sums, token_gradients)
    outputs = (new_map(pixels), split_sums(pixels, queries.shape[-2], how.splits, in_fp32=shared))
    numbers = dict(scale=scale, query_stride=stride_of(queries), RELOAD=pixels.itemsize == 4)
    launch(tokenize_backward_kernel, how, *operands, *outputs, **numbers, **sizes(pixels, queries.shape[-2]))
    pixel_gradients, query_gradients = outputs[0], sum_of_splits(outputs[1])
    if shared:
        query_gradients = query_gradients.sum(0, dtype=torch.float32)
    return pixel_gradients, query_gradients.to(queries.dtype)


def project(pixels: Tensor, keys: Tensor, values: Tensor, scale: float, residual: bool) -> Tensor:
    """What pixels ``(N, P, C)`` read from keys and values ``(N, L, C)``, and with ``residual`` themselves added."""
    pixels, keys, values = in_order_of(pixels, pixels), keys.contiguous(), values.contiguous()
    read, constants = new_map(pixels), sizes(pixels, keys.shape[1])
    operands = (pixels, keys, values, read)
    launch(project_kernel, plan(pixels, FORWARD), *operands, scale=scale, RESIDUAL=residual, **constants)
    return read


def project_backward(
    read_gradients: Tensor, pixels: Tensor, keys: Tensor, values: Tensor, scale: float, residual: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of pixels ``(N, P, C)``, keys and values ``(N, L, C)`` from those of what was read, ``(N, P, C)``."""
    pixels, keys, values = in_order_of(pixels, pixels), keys.contiguous(), values.contiguous()
    operands, how = (pixels, keys, values, in_order_of(pixels, read_gradients)), plan(pixels, BACKWARD)
    key_gradients, value_gradients = (split_sums(pixels, keys.shape[1], how.splits) for _ in range(2))
    outputs = (new_map(pixels), key_gradients, value_gradients)
    numbers = dict(scale=scale, RESIDUAL=residual, RELOAD=pixels.itemsize == 4)
    launch(project_backward_kernel, how, *operands, *outputs, **numbers, **sizes(pixels, keys.shape[1]))
    return outputs[0], *(sum_of_splits(sums).to(pixels.dtype) for sums in (key_gradients, value_gradients))


def in_order_of(pixels: Tensor, gradients: Tensor) -> Tensor:
    """Gradients of a map, or the map itself, dense and in the map's memory order; copied only where they aren't."""
    if is_channel_major(pixels):
        return gradients.transpose(1, 2).contiguous().transpose(1, 2)
    return gradients.contiguous()


def split_sums(pixels: Tensor, num_tokens: int, splits: int, in_fp32: bool = False) -> Tensor:
    """Room for the sums over each split's pixels, ``(N, S, L, C)``, in fp32 where more is to be added up."""
    n, _, c = pixels.shape
    dtype = torch.float32 if in_fp32 or splits > 1 else pixels.dtype
    return pixels.new_empty(n, splits, num_tokens, c, dtype=dtype)


def sum_of_splits(sums: Tensor) -> Tensor:
    """``(N, S, L, C)`` to ``(N, L, C)``."""
    return sums.squeeze(1) if sums.shape[1] == 1 else sums.sum(1)
