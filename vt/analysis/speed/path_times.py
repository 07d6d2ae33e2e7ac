"""The ways to compute tokenize and project side by side, on maps of the models' sizes.

Letters as in ``vt/ops/plain.py``.
"""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vt import ops
from vt.ops import triton_path
from vt.ops.dispatch import FLASH_CHANNELS, current_path

from .timing import Step, time_interleaved

# N, C, H, W, L: VT-FPN's levels at 800x1216, and VT-ResNet's maps; the first is all that a CPU gets.
SIZES = [
    (1, 256, 25, 38, 8),
    (1, 256, 100, 152, 8),
    (1, 256, 200, 304, 8),
    (8, 256, 200, 304, 8),
    (1, 256, 14, 14, 16),
    (8, 256, 14, 14, 16),
    (256, 256, 14, 14, 16),
    (32, 1024, 14, 14, 16),
]
FORMATS = dict(channels_last=torch.channels_last, contiguous=torch.contiguous_format)


def paths_for(x: Tensor, num_tokens: int) -> list[str]:
    """The paths that can compute on a map, the one that would be chosen first."""
    flash = x.is_cuda and x.dtype.itemsize == 2 and x.shape[1] <= FLASH_CHANNELS
    can = dict(triton=triton_path.supports(x, num_tokens), sdpa=flash, fused=True, plain=True)
    chosen = current_path(x, num_tokens)
    return [chosen, *(name for name, possible in can.items() if possible and name != chosen)]


def steps_of(x: Tensor, num_tokens: int) -> Iterator[tuple[str, str, dict[str, Step]]]:
    """Operation, kind and, for each path, a step of it; a step of training has the gradients of every operand."""
    n, c = x.shape[:2]
    queries = torch.randn(num_tokens, c, dtype=x.dtype, device=x.device) * c**-0.5
    keys, values = torch.randn(2, n, 1, num_tokens, c, dtype=x.dtype, device=x.device).mul(c**-0.5)
    for name, *tokens in (('tokenize', queries), ('project_onto', keys, values)):
        function = getattr(ops, name)
        for kind in ('inference', 'training'):
            operands = [tensor.detach().requires_grad_(kind == 'training') for tensor in (x, *tokens)]
            yield name, kind, {path: _step(function, path, operands) for path in paths_for(x, num_tokens)}


def _step(function: Any, path: str, operands: list[Tensor]) -> Step:
    def step() -> None:
        with ops.use_path(path):
            value = function(*operands)
            if value.requires_grad:
                torch.autograd.grad(value, operands, value.detach())

    return step


def measure_paths(device: torch.device, dtypes: Iterable[torch.dtype], sizes: Iterable[tuple]) -> list[dict[str, Any]]:
    """A row for each operation, kind, size, memory format and precision: milliseconds of each path.

    The chosen path comes first; ``chosen_over_best`` is its time over the fastest one's.
    """
    rows = []
    for (n, c, h, w, num_tokens), layout, dtype in product(sizes, FORMATS, dtypes):
        x = torch.randn(n, c, h, w, device=device, dtype=dtype).contiguous(memory_format=FORMATS[layout])
        for name, kind, steps in steps_of(x, num_tokens):
            title = f'{name}, {kind}, {n}x{c}x{h}x{w}, {layout}, {dtype}'
            times = time_interleaved(steps, device, title, rounds=10, seconds=0.25)
            medians = {path: 1e3 * float(np.median(seconds)) for path, seconds in times.items()}
            what = dict(operation=name, kind=kind, map=f'{n}x{c}x{h}x{w}', tokens=num_tokens, layout=layout)
            chosen = next(iter(steps))
            best = min(medians.values())
            ratio = medians[chosen] / best
            rows.append(what | dict(dtype=str(dtype), chosen=chosen, chosen_over_best=ratio, milliseconds=medians))
    return rows


def table(rows: Iterable[dict[str, Any]]) -> list[dict[str, str]]:
    """The same as text, a column a path."""
    columns = dict.fromkeys((path for row in rows for path in row['milliseconds']), '')
    return [
        {name: str(value) for name, value in row.items() if name not in ('milliseconds', 'chosen_over_best')}
        | columns
        | {path: f'{value:.3f}' for path, value in row['milliseconds'].items()}
        | {'chosen / fastest': f'{row["chosen_over_best"]:.2f}'}
        for row in rows
    ]
