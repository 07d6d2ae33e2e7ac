"""The Triton kernels against the plain path, once for each kind of map, before they are trusted with one."""

import os
import warnings
from importlib.metadata import version
from operator import index

import torch
from torch import Tensor

from . import plain, triton_path
from .maps import num_channels

TOLERANCE = 0.02  # relative, by the Euclidean norm: above the rounding of 16 bits, below a mistake
RESULTS = ('tokens', 'their dX', 'their dQ', 'read pixels', 'their dX', 'their dK', 'their dV')  # as in triton_kernels
_tried: dict[tuple, bool] = {}  # what was found, by the kind of map


def is_trusted(x: Tensor, num_tokens: int) -> bool:
    """Whether the kernels compute on such a map, or its pixels, what the plain path computes.

    The first time for a kind of map they are tried on small random ones, forward and backward. Where they fail or
    differ, one warning says so. They are neither tried nor used in a program that is exported, nor, untried, while a
    CUDA graph is captured. ``VT_CHECK_KERNELS=0`` in the environment trusts them untried.
    """
    if _is_exporting() or type(x) not in (Tensor, torch.nn.Parameter):
        return False  # a subclass stands for a tensor while a program is traced
    return _is_trusted(x.device.type, x.device.index, x.dtype, index(num_channels(x)), index(num_tokens))


@torch.compiler.assume_constant_result
def _is_exporting() -> bool:
    """Asked outside of the compiler: PyTorch 2.11's takes it for True in every program that it traces."""
    return torch.compiler.is_exporting()


@torch.compiler.assume_constant_result
def _is_trusted(device: str, index: int | None, *kind) -> bool:
    place = (device, index, *kind)
    if place not in _tried and os.environ.get('VT_CHECK_KERNELS') != '0':
        if device == 'cuda' and torch.cuda.is_current_stream_capturing():
            _warn('not in this CUDA graph', 'run the model once before it is captured')
            return False
        try:
            with torch.inference_mode(False), torch.enable_grad(), torch.autocast(device, enabled=False):
                problem = _find_problem(torch.device(device, index), *kind)
        except torch.OutOfMemoryError:
            return False  # another time there may be room
        except Exception as error:  # whatever compilers, drivers and GPUs that we never saw have in store
            problem = f'they end in {type(error).__name__}: {error}'
        _tried[place] = not problem
        if problem:
            name = torch.cuda.get_device_name(index) if device == 'cuda' else device
            versions = f'{name}, torch {torch.__version__}, CUDA {torch.version.cuda}, Triton {version("triton")}'
            what = 'left out for {1} channels, {2} tokens and {0}'.format(*kind)
            _warn(what, f"{problem}. PyTorch's own operators compute instead. Please report this line ({versions})")
    return _tried.get(place, True)


def _warn(what: str, why: str) -> None:
    warnings.warn(f'The Triton kernels are {what}: {why}.', RuntimeWarning, stacklevel=4)


def _find_problem(device: torch.device, dtype: torch.dtype, c: int, num_tokens: int) -> str | None:
    """What is wrong with the kernels, in words; None if nothing is.

    Programs get several blocks, the last one not full: of a sample that has many programs, and of many samples.
    """
    random, block = torch.Generator().manual_seed(0), triton_path.FORWARD['BLOCK_P']
    most = triton_path.num_programs(device.type, device.index)
    for n, num_pixels, onto in ((1, 2 * most * block + 5, True), (most + 1, 2 * block + 5, False)):
        pixels = torch.randn(n, num_pixels, c, generator=random).relu()
        queries, keys, values = (torch.randn(n, 1, num_tokens, c, generator=random) for _ in range(3))
        operands = (pixels, queries[0 if onto else slice(None)].squeeze(-3) / c**0.5, keys / c**0.5, values)
        operands = [tensor.to(device, dtype) for tensor in operands]
        ours = _values_and_gradients(triton_path, onto, *operands)
        exact = _values_and_gradients(plain, onto, *(tensor.double() for tensor in operands))
        for name, own, other in zip(RESULTS, ours, exact):
            error = ((own - other).norm() / other.norm()).item()
            if not error <= TOLERANCE:
                return f'{name} are off by {error:.2g} of their norm'
    return None


def _values_and_gradients(path, onto: bool, *operands: Tensor) -> list[Tensor]:
    """Both operations' values and their gradients along a random direction."""
    found = []
    pixels, queries, keys, values = (tensor.detach().requires_grad_() for tensor in operands)
    project = path.project_onto if onto else path.project
    for function, leaves in ((path.tokenize, (pixels, queries)), (project, (pixels, keys, values))):
        value = function(*leaves)
        direction = torch.randn(value.shape, generator=torch.Generator().manual_seed(1)).to(value)
        found += [value.detach(), *torch.autograd.grad(value, leaves, direction)]
    return found
