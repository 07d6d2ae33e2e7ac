"""The Triton kernels against the plain path, once for each kind of map, before they are trusted with one.

Letters as in ``plain.py``.
"""

import os
import warnings
from collections.abc import Callable
from functools import cache
from operator import index

import torch
from torch import Tensor

from . import plain, triton_path
from .maps import is_channel_major, to_pixels
from .triton_sizes import BLOCKS, alignment, only

TOLERANCE = 0.02  # relative, by the Euclidean norm: above the rounding of 16 bits and of TF32, below a mistake
NUM_PIXELS = 300  # about: several blocks for each program, and a last one that isn't full
RESULTS = ('tokens', "the pixels' gradients", "the queries' gradients")
READ_RESULTS = ('refined pixels', "the pixels' gradients", "the keys' gradients", "the values' gradients")


def is_trusted(x: Tensor, num_tokens: int) -> bool:
    """Whether the kernels compute on such a map, or its pixels, what the plain path computes.

    The first time for a kind of map they are tried, in each way that a launch can choose, on a small random map,
    forward and backward. Where they fail or differ, one warning says so. ``VT_CHECK_KERNELS=0`` in the environment
    trusts them untried.
    """
    if type(x) not in (Tensor, torch.nn.Parameter):
        return True  # it stands for a tensor while a program is traced: there are no numbers to compare
    pixels = to_pixels(x)
    sizes = index(pixels.shape[2]), index(num_tokens)  # numbers, also where a compiler would leave them open
    order = 'NCHW' if is_channel_major(pixels) else 'NHWC'
    return _is_trusted(x.device.type, x.device.index, x.dtype, *sizes, order, alignment(pixels))


@torch.compiler.assume_constant_result
def _is_trusted(*kind) -> bool:
    return os.environ.get('VT_CHECK_KERNELS') == '0' or _try(*kind)


@cache
def _try(device: str, number: int | None, dtype: torch.dtype, c: int, num_tokens: int, order: str, step: int) -> bool:
    num_pixels = step * (NUM_PIXELS // step | 1)  # no larger power of two divides it
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast(device, enabled=False):
        operands = _random_operands(num_pixels, c, num_tokens, order)
        problem = _find_problem(*(tensor.to(torch.device(device, number), dtype) for tensor in operands))
    if problem:
        import triton

        name = torch.cuda.get_device_name(number) if device == 'cuda' else device
        warnings.warn(
            f'The Triton kernels are left out for {c} channels ({order} by {step}), {num_tokens} tokens and {dtype}: '
            f"{problem}. PyTorch's own operators compute instead, more slowly. Please report this line "
            f'({name}, torch {torch.__version__}, CUDA {torch.version.cuda}, Triton {triton.__version__}).',
            RuntimeWarning,
            stacklevel=2,
        )
    return not problem


def _random_operands(num_pixels: int, c: int, num_tokens: int, order: str) -> list[Tensor]:
    """Pixels as after a ReLU, ``(2, P, C)``, queries, keys and values ``(2, L, C)``, by a random state of their own."""
    random = torch.Generator().manual_seed(0)
    shape = (2, c, num_pixels) if order == 'NCHW' else (2, num_pixels, c)
    pixels = torch.randn(shape, generator=random).relu()
    queries, keys, values = (torch.randn(2, num_tokens, c, generator=random) for _ in range(3))
    return [pixels.transpose(1, 2) if order == 'NCHW' else pixels, queries / c**0.5, keys / c**0.5, values]


def _find_problem(pixels: Tensor, queries: Tensor, keys: Tensor, values: Tensor) -> str | None:
    """What is wrong with the kernels, in words; None if nothing is."""
    read_operands = (pixels, keys.unsqueeze(1), values.unsqueeze(1))
    tokens = _with_gradients(plain.tokenize, pixels.double(), queries.double())
    read = _with_gradients(plain.project_onto, *(tensor.double() for tensor in read_operands))
    for block_p in BLOCKS:
        try:
            with only(block_p):
                ours = _with_gradients(triton_path.tokenize, pixels, queries)
                ours += _with_gradients(triton_path.project_onto, *read_operands)
            errors = [((own - exact).norm() / exact.norm()).item() for own, exact in zip(ours, tokens + read)]
        except Exception as error:  # whatever compilers, drivers and GPUs that we never saw have in store
            return f'they end in {type(error).__name__}: {error}'
        for name, error in zip(RESULTS + READ_RESULTS, errors):
            if not error <= TOLERANCE:
                return f'{name} are off by {error:.2g} of their norm, in blocks of {block_p} pixels'
    return None


def _with_gradients(function: Callable[..., Tensor], *operands: Tensor) -> list[Tensor]:
    """A function's value and its gradients along a random direction."""
    leaves = [tensor.detach().requires_grad_() for tensor in operands]
    value = function(*leaves)
    direction = torch.randn(value.shape, generator=torch.Generator().manual_seed(1)).to(value)
    return [value.detach(), *torch.autograd.grad(value, leaves, direction)]
