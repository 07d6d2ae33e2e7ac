"""The path of our own kernels on NVIDIA GPUs: one pass over the map for each operation, written in Triton.

The operations are registered with PyTorch, so that ``torch.compile`` and ``torch.export`` see each as one whole. Triton
itself is imported when the first of them runs. Letters as in ``plain.py``.
"""

import torch
from torch import Tensor

from .plain import is_channel_major
from .precision import autocast_dtype
from .triton_sizes import available_shared_memory, fits

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def supports(pixels: Tensor, num_tokens: int, num_heads: int = 1) -> bool:
    """Whether the kernels can take pixels ``(N, P, C)`` with so many tokens and heads, on the pixels' device.

    They want Triton, an NVIDIA GPU of compute capability 8.0 or newer, one head, fp32, bf16 or fp16 (under autocast
    its dtype counts), and sums over the pixels, L x C in fp32, that fit into a program's registers: in 16 bits at 1,024
    channels up to 32 tokens and at 256 up to 128, in fp32 up to 16 and 32; fewer on a GPU of little shared memory.
    """
    dtype = autocast_dtype(pixels) or pixels.dtype
    if num_heads != 1 or dtype not in DTYPES or pixels.numel() == 0:
        return False
    available = available_shared_memory(pixels.device.type, pixels.device.index)
    return fits(pixels.shape[2], num_tokens, dtype.itemsize, available)


def tokenize(pixels: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.tokenize`, for one head.

    Raises:
        ValueError: pixels and queries differ in dtype, or there are several heads.
    """
    require_one_head(num_heads)
    pixels, queries = as_one_dtype(pixels, queries)
    return torch.ops.vt.triton_tokenize(pixels, queries, scale)[0]


def project(pixels: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.project`, for one head.

    Raises:
        ValueError: the tensors differ in dtype, or there are several heads.
    """
    return _project(pixels, keys, values, scale, residual=False)


def project_onto(pixels: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.project_onto`, for one head; raises as :func:`project` does."""
    return _project(pixels, keys, values, scale, residual=True)


def _project(pixels: Tensor, keys: Tensor, values: Tensor, scale: float, residual: bool) -> Tensor:
    require_one_head(keys.shape[1])
    pixels, keys, values = as_one_dtype(pixels, keys.squeeze(1), values.squeeze(1))
    return torch.ops.vt.triton_project(pixels, keys, values, scale, residual)


def require_one_head(num_heads: int) -> None:
    if num_heads != 1:
        raise ValueError(f'the Triton kernels take one head, not {num_heads}: use the plain path for more')


def as_one_dtype(pixels: Tensor, *tokens: Tensor) -> tuple[Tensor, ...]:
    """Operands as a matrix product takes them: in autocast's dtype where it is on, else all alike."""
    dtype = autocast_dtype(pixels)
    if dtype is not None:
        return tuple(tensor.to(dtype) for tensor in (pixels, *tokens))
    for tensor in tokens:
        if tensor.dtype != pixels.dtype:
            raise ValueError(f'pixels are {pixels.dtype} but the tokens {tensor.dtype}: cast one, or use autocast')
    return pixels, *tokens


def new_map(pixels: Tensor) -> Tensor:
    """An empty dense map in the memory order of ``pixels``."""
    n, num_pixels, c = pixels.shape
    if is_channel_major(pixels):
        return pixels.new_empty(n, c, num_pixels).transpose(1, 2)
    return pixels.new_empty(n, num_pixels, c)


@torch.library.custom_op('vt::triton_tokenize', mutates_args=())
def triton_tokenize(pixels: Tensor, queries: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Tokens ``(N, L, C)`` and the base-two logarithms of their sums of exponentials, ``(N, L)``."""
    from . import triton_launch

    return triton_launch.tokenize(pixels, queries, scale)


@triton_tokenize.register_fake
def _(pixels: Tensor, queries: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    n, num_tokens = pixels.shape[0], queries.shape[-2]
    tokens = pixels.new_empty(n, num_tokens, pixels.shape[2])
    return tokens, pixels.new_empty(n, num_tokens, dtype=torch.float32)


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
    return *torch.ops.vt.triton_tokenize_backward(token_gradients, *ctx.saved_tensors, ctx.scale), None


def _save_project(ctx, inputs, output) -> None:
    *tensors, ctx.scale, ctx.residual = inputs
    ctx.save_for_backward(*tensors)


def _project_gradients(ctx, read_gradients: Tensor) -> tuple:
    gradients = torch.ops.vt.triton_project_backward(read_gradients, *ctx.saved_tensors, ctx.scale, ctx.residual)
    return *gradients, None, None


triton_tokenize.register_autograd(_tokenize_gradients, setup_context=_save_tokenize)
triton_project.register_autograd(_project_gradients, setup_context=_save_project)
