"""Products of tokens and matrices on a CPU, by PyTorch's BLAS or by oneDNN, whichever is faster on the processor.

PyTorch hands products in float32 to a BLAS, mostly Intel's MKL, which on AMD's processors with AVX-512 reaches about
half of what they can. oneDNN, with which PyTorch computes its convolutions, reaches it, and takes a product by
``linear`` of a tensor in oneDNN's own layout. That costs a copy of the tokens and, where a matrix is not read as it
lies in memory, one of the matrix; on Intel's processors MKL is ahead. So a trial of milliseconds decides, once a
process.

Letters: M rows of tokens, K channels of the input, N channels of the output.
"""

import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import linear

from vt.errors import UserError

LIBRARIES = ('blas', 'onednn')
TRIAL = (128, 1024, 1024)  # M, K, N
TRIAL_ROUNDS = 5
LEAD = 1.5  # oneDNN is chosen from here on: no noise of a measurement then turns the choice of a processor
LEAST_MULTIPLY_ADDS = 2**23  # of a product that oneDNN is asked for; a smaller one ends before the copy would pay
LEAST_ROWS = 128  # of tokens, where there are gradients, which must copy a matrix
_library = 'blas'


def token_library() -> str:
    """Which library computes :func:`multiply` in this process, ``'blas'`` or ``'onednn'``."""
    return _library


def choose_token_library(name: str = 'auto') -> str:
    """Choose for this process.

    Args:
        name: ``'blas'``, ``'onednn'``, or ``'auto'``: what :func:`onednns_lead` says.

    Returns:
        What was chosen.

    Raises:
        UserError: no library has this name, or PyTorch was built without oneDNN.
    """
    global _library
    if name not in ('auto', *LIBRARIES):
        raise UserError(f'there is no library of products {name!r}: choose auto, {" or ".join(LIBRARIES)}')
    if name == 'onednn' and not torch.backends.mkldnn.is_available():
        raise UserError('this PyTorch was built without oneDNN: choose auto or blas')
    if name == 'auto':
        name = 'onednn' if torch.backends.mkldnn.is_available() and onednns_lead() >= LEAD else 'blas'
    _library = name
    return name


def onednns_lead(size: tuple[int, int, int] = TRIAL) -> float:
    """How many times as fast as the BLAS oneDNN is in a product of M, K, N.

    The fastest of interleaved runs on one thread, by that thread's own clock: so it is the processor's, whatever else
    the machine does.
    """
    rows, inputs, outputs = size
    x, weight = (
        torch.ones(size, inputs, dtype=torch.float32) for size in (rows, outputs)
    )  # none of a run's random numbers
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


def multiply(x: Tensor, weight: Tensor) -> Tensor:
    """``x weight^T`` of tokens ``(..., K)`` and a matrix ``(N, K)``, to ``(..., N)``.

    oneDNN is asked only where the matrix lies row by row in memory.
    """
    if _library == 'blas' or not _suits_onednn(x, weight):
        return x @ weight.T
    return _Product.apply(x.flatten(0, -2), weight).unflatten(0, x.shape[:-1])


def _suits_onednn(x: Tensor, weight: Tensor) -> bool:
    """Whether it is in float32 on a CPU, large enough, with gradients of many tokens, and nobody traces it."""
    if torch.compiler.is_compiling() or x.numel() * weight.shape[0] < LEAST_MULTIPLY_ADDS or x.dim() < 2:
        return False
    if x.device.type != 'cpu' or x.dtype != torch.float32 or weight.dtype != torch.float32:
        return False
    if x.numel() < LEAST_ROWS * x.shape[-1] and torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad):
        return False
    return weight.is_contiguous() and not torch.is_autocast_enabled('cpu') and not torch.jit.is_tracing()


class _Product(torch.autograd.Function):
    """Tokens ``(M, K)`` and a matrix ``(N, K)`` to ``(M, N)``."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        return _by_onednn(x, weight)

    @staticmethod
    def setup_context(ctx, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        # Gradients of gradients go through PyTorch's own product.
        product = _by_blas if torch.is_grad_enabled() else _by_onednn
        x_grad = product(grad, weight.T) if ctx.needs_input_grad[0] else None  # M, K
        weight_grad = product(grad.T, x.T) if ctx.needs_input_grad[1] else None  # N, K
        return x_grad, weight_grad


def _by_blas(x: Tensor, weight: Tensor) -> Tensor:
    return x @ weight.T


def _by_onednn(x: Tensor, weight: Tensor) -> Tensor:
    return linear(x.contiguous().to_mkldnn(), weight.contiguous()).to_dense()


def _seconds(step: Callable[[], Tensor]) -> float:
    begin = time.thread_time()
    step()
    return time.thread_time() - begin
