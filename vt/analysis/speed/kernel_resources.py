"""What each Triton kernel takes of a GPU's registers and shared memory; the GPU need not be there.

Letters as in ``vt/ops/triton_kernels.py``.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel

from vt.ops import triton_launch as launches
from vt.ops.triton_sizes import BACKWARD, FORWARD, Choice, choices

# Ten times the compute capability, and the kB of shared memory that a program may take; code for 8.0 also runs on GPUs
# of 8.6 and 8.9, which have less of it than an A100.
SHARED_KB = {80: 99, 90: 227, 100: 227}
KERNELS = {
    launches.tokenize_kernel: FORWARD,
    launches.project_kernel: FORWARD,
    launches.tokenize_backward_kernel: BACKWARD,
    launches.project_backward_kernel: BACKWARD,
}
TYPES = {torch.float32: 'fp32', torch.bfloat16: 'bf16', torch.float16: 'fp16'}
# Those of the arguments that don't have the map's; sums are fp32 where there are several splits.
OTHER_TYPES = dict(P='i32', size_class='i32', query_stride='i32', scale='fp32') | dict.fromkeys(
    ('tokens', 'log_sums', 'query_gradients', 'key_gradients', 'value_gradients'), '*fp32'
)


class Case(NamedTuple):
    """A kind of map and an architecture."""

    dtype: torch.dtype
    num_channels: int
    num_tokens: int
    layout: str = 'NHWC'
    num_pixels: int = 196
    architecture: int = 90

    def pixels(self) -> Tensor:
        """Such pixels, ``(1, P, C)``, without memory."""
        shape = (1, self.num_pixels, self.num_channels)
        if self.layout == 'NHWC':
            return torch.empty(shape, dtype=self.dtype, device='meta')
        return torch.empty(1, *shape[:0:-1], dtype=self.dtype, device='meta').transpose(1, 2)


def cases() -> list[Case]:
    """The largest maps that the kernels take, and a small one; in NCHW by what divides P, for one architecture."""
    half, single = torch.bfloat16, torch.float32
    maps = [(half, 256, 8), (half, 128, 32), (half, 64, 8), (single, 256, 8), (single, 128, 8)]
    nchw = [(half, 256, 8, 'NCHW', 15200), (half, 256, 8, 'NCHW', 950), (single, 256, 8, 'NCHW', 950)]
    return [Case(*some, architecture=sm) for sm in SHARED_KB for some in (maps + nchw if sm == 90 else maps)]


def compile_kernel(kernel: triton.JITFunction, choice: Choice, case: Case) -> CompiledKernel:
    """A kernel's machine code, as a launch would have it compiled."""
    constants = launches.sizes(case.pixels(), case.num_tokens) | dict(BLOCK_P=choice.BLOCK_P)
    constants |= dict(RESIDUAL=True, RELOAD=case.dtype == torch.float32)
    constants = {name: constants[name] for name in kernel.arg_names if name in constants}
    types = {name: OTHER_TYPES.get(name, f'*{TYPES[case.dtype]}') for name in kernel.arg_names}
    types |= dict.fromkeys(constants, 'constexpr')
    divisible = [name for name, kind in types.items() if kind.startswith('*') or name == 'query_stride']
    aligned = {(kernel.arg_names.index(name),): [['tt.divisibility', 16]] for name in divisible}
    options = dict(num_warps=choice.num_warps, num_stages=choice.num_stages)
    source = ASTSource(kernel, types, constants, aligned)
    return triton.compile(source, target=GPUTarget('cuda', case.architecture, 32), options=options)


def registers_and_spills(compiled: CompiledKernel) -> tuple[int, int]:
    """Registers of a thread, and bytes of each thread that didn't fit into them."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder, 'kernel.cubin')
        cubin.write_bytes(compiled.asm['cubin'])
        command = [triton.knobs.nvidia.cuobjdump.path, '--dump-resource-usage', str(cubin)]
        report = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return tuple(int(re.search(rf'{name}:(\d+)', report)[1]) for name in ('REG', 'STACK'))


def candidates(some: Iterable[Case]) -> Iterator[tuple[triton.JITFunction, Choice, Case]]:
    """Every kernel in every way that a launch can choose, for some kinds of maps."""
    for case in some:
        for kernel, most_bytes in KERNELS.items():
            for choice in choices(case.num_channels, case.dtype.itemsize, most_bytes):
                yield kernel, choice, case


def describe(kernel: triton.JITFunction, choice: Choice, case: Case) -> dict[str, Any]:
    """A row of the table, without what it takes."""
    return dict(
        kernel=kernel.__name__.removesuffix('_kernel'),
        sm=case.architecture,
        type=TYPES[case.dtype],
        C=case.num_channels,
        L=case.num_tokens,
        layout=case.layout if case.layout == 'NHWC' else f'NCHW, P={case.num_pixels}',
        **choice._asdict(),
    )


def measure(kernel: triton.JITFunction, choice: Choice, case: Case) -> dict[str, Any]:
    """A row of the table."""
    compiled = compile_kernel(kernel, choice, case)
    registers, spilled = registers_and_spills(compiled)
    taken = dict(registers=registers, spilled_bytes=spilled, shared_bytes=compiled.metadata.shared)
    return describe(kernel, choice, case) | taken


def table(results: Iterable[dict[str, Any]]) -> list[dict[str, str]]:
    """A row for each kernel, map and choice; for each architecture registers, spilled bytes and kB of shared memory."""
    rows: dict[tuple, dict[str, str]] = {}
    for result in results:
        what = {name: str(result[name]) for name in ('kernel', 'type', 'C', 'L', 'layout', *Choice._fields)}
        taken = '{registers} / {spilled_bytes} / {shared:.0f}'.format(**result, shared=result['shared_bytes'] / 1024)
        row = rows.setdefault(tuple(what.values()), what | {f'sm_{sm}': '' for sm in SHARED_KB})
        row[f'sm_{result["sm"]}'] = taken
    return list(rows.values())
