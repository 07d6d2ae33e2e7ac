"""Check of the Triton kernels against PyTorch's products in float64, before the first use for each kind of map."""

import os
import warnings
from importlib.metadata import version
from operator import index

import torch
from torch import Tensor

from . import functions, triton_path
from .maps import num_channels

TOLERANCE = 0.02  # relative error in the Euclidean norm, above the rounding of 16 bits
# As in triton_kernels: of tokenize, then of project.
RESULTS = ('tokens', 'dX', 'dQ', 'sums of dX', 'read pixels', 'dX', 'dK', 'dV')
_tried: dict[tuple, bool] = {}  # results by kind of map


def is_trusted(x: Tensor, num_tokens: int) -> bool:
    """Whether the kernels give the results of the equations for this kind of map: device, dtype, channels and tokens.

    The first call for a kind of map runs forward and backward on small random maps, and warns if they fail or differ.
    The kernels are not used in exported programs, and without an earlier check not during the capture of a CUDA graph.
    ``VT_CHECK_KERNELS=0`` in the environment skips the check.

    Args:
        x: a map ``(N, C, H, W)`` or its pixels ``(N, P, C)``.
        num_tokens: L.
    """
    if is_exporting() or type(x) not in (Tensor, torch.nn.Parameter):
        return False  # subclasses are used for tracing
    return _is_trusted(x.device.type, x.device.index, x.dtype, index(num_channels(x)), index(num_tokens))


@torch.compiler.assume_constant_result
def is_exporting() -> bool:
    """Whether ``torch.export`` runs, evaluated outside of the compiler: inside, PyTorch 2.11 always assumes True."""
    return torch.compiler.is_exporting()


@torch.compiler.assume_constant_result
def _is_trusted(device: str, index: int | None, *kind) -> bool:
    place = (device, index, *kind)
    if place not in _tried and os.environ.get('VT_CHECK_KERNELS') != '0':
        if device == 'cuda' and torch.cuda.is_current_stream_capturing():
            _warn('not used in this CUDA graph', 'run the model once before the capture')
            return False
        try:
            with torch.inference_mode(False), torch.enable_grad(), torch.autocast(device, enabled=False):
                problem = _find_problem(torch.device(device, index), *kind)
        except torch.OutOfMemoryError:
            return False  # there may be enough memory the next time
        except Exception as error:  # any error of a compiler, driver or GPU
            problem = f'they end in {type(error).__name__}: {error}'
        _tried[place] = not problem
        if problem:
            name = torch.cuda.get_device_name(index) if device == 'cuda' else device
            versions = f'{name}, torch {torch.__version__}, CUDA {torch.version.cuda}, Triton {version("triton")}'
            what = 'not used for {1} channels, {2} tokens and {0}'.format(*kind)
            _warn(what, f"{problem}. PyTorch's operators are used instead. Please report this line ({versions})")
    return _tried.get(place, True)


def _warn(what: str, why: str) -> None:
    warnings.warn(f'The Triton kernels are {what}: {why}.', RuntimeWarning, stacklevel=4)


def _find_problem(device: torch.device, dtype: torch.dtype, c: int, num_tokens: int) -> str | None:
    """Return a description of what is wrong with the kernels; None if nothing is.

    The sizes give each program several blocks, the last one partial, for one sample with many programs and for many
    samples, of two and of four levels.
    """
    random, block = torch.Generator().manual_seed(0), triton_path.FORWARD['BLOCK_P']
    most = triton_path.num_programs(device.type, device.index)
    for n, num_pixels, num_levels in ((1, 2 * most * block + 5, 2), (most + 1, 2 * block + 5, 4)):
        pixels = torch.randn(n, num_pixels, c, generator=random).relu()
        queries, keys, values = (torch.randn(num_levels, n, num_tokens, c, generator=random) for _ in range(3))
        operands = [x.to(device, dtype) for x in (pixels, queries / c**0.5, keys / c**0.5, values)]
        ours = _values_and_gradients('triton', *operands)
        exact = _values_and_gradients('fused', *(x.double() for x in operands))
        for name, own, other in zip(RESULTS, ours, exact):
            error = ((own - other).norm() / other.norm()).item()
            if not error <= TOLERANCE:
                return f'{name}: they are off by {error:.2g} of the norm'
    return None


def _values_and_gradients(path: str, *operands: Tensor) -> list[Tensor]:
    """Outputs of both operations, and their gradients for random output gradients.

    With two levels, all samples share their queries, the levels have another, small gradient, and what is read is added
    to the pixels.
    """
    pixels, queries, keys, values = [x.detach().requires_grad_() for x in operands]
    is_first, levels = len(queries) == 2, [pixels[:, : pixels.shape[1] // (i + 1)] for i in range(len(queries))]
    biases = torch.zeros_like(queries[:, 0, 0]).requires_grad_()
    tokens, passed = functions.tokenize(path, levels, queries[:, :1] if is_first else queries, biases)
    others = [x / x.shape[1] for x in passed] if is_first else []
    found = []
    read = functions.project(path, levels, keys, values, residual=is_first)
    for outputs, leaves in (((tokens, *others), (pixels, queries, biases)), (read, (pixels, keys, values))):
        random = torch.Generator().manual_seed(1)
        directions = [torch.randn(x.shape, generator=random).to(x) for x in outputs]
        value = torch.cat([x.detach().flatten() for x in outputs])
        found += [value, *torch.autograd.grad(outputs, leaves, directions, retain_graph=True)]
    return found
