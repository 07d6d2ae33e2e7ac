"""The path of our own kernels on NVIDIA GPUs: one pass over the map for each operation, written in Triton.

The operations are registered with PyTorch, so that ``torch.compile`` and ``torch.export`` see each as one whole. Triton
itself is imported when the first of them runs. Letters as in ``plain.py``.
"""

from functools import partial

import torch
from torch import Tensor

from vt.errors import UserError

from . import plain
from .maps import in_shape_of, new_map, to_pixels
from .second_order import differentiable_gradients, of_one_head
from .triton_sizes import can_run, fits

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def supports(x: Tensor, num_tokens: int, num_heads: int = 1) -> bool:
    """Whether the kernels are for a map, or its pixels, with so many tokens and heads, on its device.

    They want Triton, an NVIDIA GPU of compute capability 8.0 or newer, one head, fp32 (whose products they make
    exactly), bf16 or fp16, and sizes that they gain something on: up to 256 channels, 16 tokens in 16 bits (32 at 128
    channels) and 8 in fp32; and, in the default memory format in 16 bits, an even number of pixels.
    """
    if not can_run(x.device.type, x.device.index) or num_heads != 1 or x.dtype not in DTYPES or x.numel() == 0:
        return False
    return fits(to_pixels(x), num_tokens)


def tokenize(x: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.tokenize`, for one head.

    Raises:
        UserError: pixels and queries differ in dtype, or there are several heads.
    """
    require_one_head_and_dtype(num_heads, x, queries)
    return torch.ops.vt.triton_tokenize(to_pixels(x), queries, scale)[0].to(x.dtype)


def project(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.project`, for one head; raises as :func:`tokenize` does."""
    return _project(x, keys, values, scale, residual=False)


def project_onto(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0, overwrite: bool = False) -> Tensor:
    """As :func:`vt.ops.plain.project_onto`, for one head; raises as :func:`tokenize` does."""
    return _project(x, keys, values, scale, residual=True)


def _project(x: Tensor, keys: Tensor, values: Tensor, scale: float, residual: bool) -> Tensor:
    require_one_head_and_dtype(keys.shape[1], x, keys, values)
    read = torch.ops.vt.triton_project(to_pixels(x), keys.squeeze(1), values.squeeze(1), scale, residual)
    return in_shape_of(x, read)


def require_one_head_and_dtype(num_heads: int, x: Tensor, *tokens: Tensor) -> None:
    if num_heads != 1:
        raise UserError(f'the Triton kernels take one head, not {num_heads}: use the plain path for more')
    for tensor in tokens:
        if tensor.dtype != x.dtype:
            raise UserError(f'pixels are {x.dtype} but the tokens {tensor.dtype}: cast one, or use autocast')


@torch.library.custom_op('vt::triton_tokenize', mutates_args=())
def triton_tokenize(pixels: Tensor, queries: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Tokens ``(N, L, C)`` and the base-two logarithms of their sums of exponentials, ``(N, L)``, both in fp32.

    The backward pass takes a mean over the pixels from the tokens, which the rounding to 16 bits would spoil.
    """
    from . import triton_launch

    return triton_launch.tokenize(pixels, queries, scale)


@triton_tokenize.register_fake
def _(pixels: Tensor, queries: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    (n, _, c), num_tokens = pixels.shape, queries.shape[-2]
    return tuple(pixels.new_empty(shape, dtype=torch.float32) for shape in ((n, num_tokens, c), (n, num_tokens)))


@torch.library.custom_op('vt::triton_tokenize_backward', mutates_args=())
def triton_tokenize_backward(
    token_gradients: Tensor, pixels: Tensor, queries: Tensor, tokens: Tensor, log_sums: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    """Gradients of pixels and queries."""
    from . import triton_launch

    return triton_launch.tokenize_backward(token_gradients, pixels, queries, tokens, log_sums, scale)


@triton_tokenize_backward.register_fake
def _(token_gradients, pixels, queries, tokens, log_sums, scale):
    return new_map(pixels), queries.new_empty(queries.shape)


@torch.library.custom_op('vt::triton_project', mutates_args=())
def triton_project(pixels: Tensor, keys: Tensor, values: Tensor, scale: float, residual: bool) -> Tensor:
    """What pixels ``(N, P, C)`` read from keys and values ``(N, L, C)``, and with ``residual`` themselves added."""
    from . import triton_launch

    return triton_launch.project(pixels, keys, values, scale, residual)


@triton_project.register_fake
def _(pixels, keys, values, scale, residual):
    return new_map(pixels)


@torch.library.custom_op('vt::triton_project_backward', mutates_args=())
def triton_project_backward(
    read_gradients: Tensor, pixels: Tensor, keys: Tensor, values: Tensor, scale: float, residual: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of pixels, keys and values."""
    from . import triton_launch

    return triton_launch.project_backward(read_gradients, pixels, keys, values, scale, residual)


@triton_project_backward.register_fake
def _(read_gradients, pixels, keys, values, scale, residual):
    return new_map(pixels), keys.new_empty(keys.shape), values.new_empty(values.shape)


def _save_tokenize(ctx, inputs, output) -> None:
    pixels, queries, ctx.scale = inputs
    ctx.save_for_backward(pixels, queries, *output)
    ctx.set_materialize_grads(False)


def _tokenize_gradients(ctx, token_gradients: Tensor | None, _) -> tuple:
    if token_gradients is None:
        return None, None, None
    pixels, queries, tokens, log_sums = ctx.saved_tensors
    if torch.is_grad_enabled():
        function = partial(plain.tokenize, scale=ctx.scale)
        return *differentiable_gradients(function, (pixels, queries), token_gradients), None
    operands = (token_gradients.to(pixels.dtype), pixels, queries, tokens, log_sums)
    return *torch.ops.vt.triton_tokenize_backward(*operands, ctx.scale), None


def _save_project(ctx, inputs, output) -> None:
    *tensors, ctx.scale, ctx.residual = inputs
    ctx.save_for_backward(*tensors)
    ctx.set_materialize_grads(False)


def _project_gradients(ctx, read_gradients: Tensor | None) -> tuple:
    if read_gradients is None:
        return None, None, None, None, None
    if torch.is_grad_enabled():
        function = partial(of_one_head(plain.project_onto if ctx.residual else plain.project), scale=ctx.scale)
        return *differentiable_gradients(function, ctx.saved_tensors, read_gradients), None, None
    gradients = torch.ops.vt.triton_project_backward(read_gradients, *ctx.saved_tensors, ctx.scale, ctx.residual)
    return *gradients, None, None


triton_tokenize.register_autograd(_tokenize_gradients, setup_context=_save_tokenize)
triton_project.register_autograd(_project_gradients, setup_context=_save_project)
