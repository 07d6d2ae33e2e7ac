"""Products of tokens and matrices on a CPU, by PyTorch's BLAS or by oneDNN, whichever is faster on the processor.

The matrices are those of VT's token side and of the linear layers of every model.

PyTorch computes float32 products by a BLAS, mostly Intel's MKL, which reaches about half of the peak speed on AMD
processors with AVX-512. oneDNN, which PyTorch uses for convolutions, reaches the peak there; ``linear`` uses it for a
tensor in oneDNN's layout. This needs a copy of the tokens and, depending on its layout, of the matrix. On Intel
processors MKL is faster. So a benchmark of a few milliseconds decides, see :func:`choose_token_library`.

Letters: M rows of tokens, K channels of the input, N channels of the output.
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import linear

from vt.errors import UserError

from .dispatch import is_plain

LIBRARIES = ('blas', 'onednn')
TRIAL = (128, 1024, 1024)  # M, K, N
TRIAL_ROUNDS = 5
SPEEDUP = 1.5  # smallest speed-up at which oneDNN is chosen, well above the noise of the measurement
LEAST_MULTIPLY_ADDS = 2**23  # for smaller products, oneDNN does not make up for the copy
LEAST_ROWS = 128  # the same for tokens of products with gradients, which copy a matrix


def choose_token_library(name: str = 'auto') -> str:
    """Choose the library of a model's products, ``'blas'`` or ``'onednn'``, whose products :func:`multiply` computes.

    Args:
        name: a library, or ``'auto'`` for what the environment variable ``VT_TOKEN_PRODUCTS`` names; if there is none,
            oneDNN where :func:`onednn_speedup`, measured once per process, is at least ``SPEEDUP``.

    Raises:
        UserError: an unknown name, or PyTorch was built without oneDNN.
    """
    if name == 'auto':
        name = os.environ.get('VT_TOKEN_PRODUCTS', 'auto')
    if name not in ('auto', *LIBRARIES):
        raise UserError(
            f'token_products (or VT_TOKEN_PRODUCTS) is {name!r}, but must be auto, {" or ".join(LIBRARIES)}'
        )
    if name == 'onednn' and not torch.backends.mkldnn.is_available():
        raise UserError('this PyTorch was built without oneDNN: choose auto or blas')
    return name if name != 'auto' else _faster_library()


@cache
def _faster_library() -> str:
    return 'onednn' if torch.backends.mkldnn.is_available() and onednn_speedup() >= SPEEDUP else 'blas'


def onednn_speedup(size: tuple[int, int, int] = TRIAL) -> float:
    """Measure the speed-up of oneDNN over the BLAS in a product of M, K, N.

    It compares the fastest of interleaved runs on one thread, in CPU time of the thread, so that other processes on the
    machine have little influence. PyTorch has no number of threads for a single product: that of a thread of our own is
    set, and those of the threads that run stay as they are.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_measure, size).result()


def _measure(size: tuple[int, int, int]) -> float:
    rows, inputs, outputs = size
    x, weight = (
        torch.ones(size, inputs, dtype=torch.float32) for size in (rows, outputs)
    )  # constants, so that the random numbers of a run do not change
    steps = [lambda: x @ weight.T, lambda: _by_onednn(x, weight)]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            times = [[_seconds(step) for step in steps] for _ in range(TRIAL_ROUNDS + 1)][1:]
    finally:
        torch.set_num_threads(threads)
    blas, onednn = map(min, zip(*times))
    return blas / onednn


def multiply(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``x weight^T + bias`` for tokens ``(..., K)``, a matrix ``(N, K)`` and a bias ``(N,)``, ``(..., N)``.

    oneDNN computes it where it supports the product and is worth its copies.
    """
    if not _suits_onednn(x, weight):
        return linear(x, weight, bias)
    return _Product.apply(x.flatten(0, -2), weight, bias).unflatten(0, x.shape[:-1])


def _suits_onednn(x: Tensor, weight: Tensor) -> bool:
    """Whether it is in float32 on a CPU, large enough, of a contiguous matrix, and neither traced nor counted."""
    if is_plain() or torch.compiler.is_compiling() or x.numel() * weight.shape[0] < LEAST_MULTIPLY_ADDS or x.dim() < 2:
        return False
    if x.device.type != 'cpu' or x.dtype != torch.float32 or weight.dtype != torch.float32:
        return False
    if x.numel() < LEAST_ROWS * x.shape[-1] and torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad):
        return False
    return weight.is_contiguous() and not torch.is_autocast_enabled('cpu') and not torch.jit.is_tracing()


class _Product(torch.autograd.Function):
    """Tokens ``(M, K)``, a matrix ``(N, K)`` and a bias ``(N,)`` or None to ``(M, N)``."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _by_onednn(x, weight, bias)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (grad,), (x, weight) = gradients, ctx.saved_tensors
        # Gradients of gradients use PyTorch's product.
        product = linear if torch.is_grad_enabled() else _by_onednn
        x_grad = product(grad, weight.T) if ctx.needs_input_grad[0] else None  # M, K
        weight_grad = product(grad.T, x.T) if ctx.needs_input_grad[1] else None  # N, K
        return x_grad, weight_grad, grad.sum(dim=0) if ctx.needs_input_grad[2] else None


def _by_onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return linear(x.contiguous().to_mkldnn(), weight.contiguous(), bias).to_dense()


def _seconds(step: Callable[[], Tensor]) -> float:
    begin = time.thread_time()
    step()
    return time.thread_time() - begin
