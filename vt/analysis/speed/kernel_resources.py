"""What each Triton kernel takes of a GPU's registers and shared memory; the GPU need not be there.

Letters as in ``vt/ops/triton_kernels.py``.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel

from vt.ops import triton_kernels
from vt.ops.triton_path import BACKWARD, COMBINE, FORWARD, sizes

# Ten times the compute capability, and the kB of shared memory that a program may take; code for 8.0 also runs on GPUs
# of 8.6 and 8.9, which have less of it than an A100.
SHARED_KB = {80: 99, 90: 227, 100: 227}
KERNELS = {
    triton_kernels.tokenize_kernel: FORWARD,
    triton_kernels.combine_kernel: COMBINE,
    triton_kernels.project_kernel: FORWARD,
    triton_kernels.tokenize_backward_kernel: BACKWARD,
    triton_kernels.project_backward_kernel: BACKWARD,
}
# Those of the arguments that don't have the map's.
NUMBERS = ('P', 'S', 'query_stride')
SINGLE = ('split_tokens', 'split_log_sums', 'exact_tokens', 'log_sums')
SINGLE += ('query_gradients', 'key_gradients', 'value_gradients')
OTHER_TYPES = dict.fromkeys(NUMBERS, 'i32') | dict.fromkeys(SINGLE, '*fp32')


class Case(NamedTuple):
    """A kind of map, in bf16, and an architecture."""

    num_channels: int
    num_tokens: int
    architecture: int


def cases() -> list[tuple[triton.JITFunction, Case]]:
    """Every kernel for the largest maps that they take, and a small one, on each architecture."""
    maps = [(256, 8), (256, 16), (128, 32), (64, 8)]
    return [(kernel, Case(*some, sm)) for sm in SHARED_KB for some in maps for kernel in KERNELS]


def compile_kernel(kernel: triton.JITFunction, case: Case) -> CompiledKernel:
    """A kernel's machine code, as a launch would have it compiled."""
    constants = KERNELS[kernel] | sizes(case.num_channels, case.num_tokens)
    constants |= dict(RESIDUAL=True, OF_PIXELS=True, OF_TOKENS=True)
    options = {name: constants[name] for name in ('num_warps', 'num_stages') if name in constants}
    constants = {name: constants[name] for name in kernel.arg_names if name in constants}
    types = {name: OTHER_TYPES.get(name, '*bf16') for name in kernel.arg_names}
    types |= dict.fromkeys(constants, 'constexpr')
    divisible = [name for name, kind in types.items() if kind.startswith('*') or name == 'query_stride']
    aligned = {(kernel.arg_names.index(name),): [['tt.divisibility', 16]] for name in divisible}
    source = ASTSource(kernel, types, constants, aligned)
    return triton.compile(source, target=GPUTarget('cuda', case.architecture, 32), options=options)


def registers_and_spills(compiled: CompiledKernel) -> tuple[int, int]:
    """Registers of a thread, and bytes of each thread that didn't fit into them."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder, 'kernel.cubin')
        cubin.write_bytes(compiled.asm['cubin'])
        command = [knobs.nvidia.cuobjdump.path, '--dump-resource-usage', str(cubin)]
        report = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return tuple(int(re.search(rf'{name}:(\d+)', report)[1]) for name in ('REG', 'STACK'))


def describe(kernel: triton.JITFunction, case: Case) -> dict[str, Any]:
    """A row of the table, without what it takes."""
    blocks = {name: value for name, value in KERNELS[kernel].items() if name.startswith('BLOCK')}
    return dict(
        kernel=kernel.__name__.removesuffix('_kernel'),
        sm=case.architecture,
        C=case.num_channels,
        L=case.num_tokens,
        block=', '.join(f'{name}={value}' for name, value in blocks.items()),
    )


def measure(kernel: triton.JITFunction, case: Case) -> dict[str, Any]:
    """A row of the table."""
    compiled = compile_kernel(kernel, case)
    registers, spilled = registers_and_spills(compiled)
    return describe(kernel, case) | dict(
        registers=registers, spilled_bytes=spilled, shared_bytes=compiled.metadata.shared
    )


def table(results: Iterable[dict[str, Any]]) -> list[dict[str, str]]:
    """A row for each kernel and map; for each architecture registers, spilled bytes and kB of shared memory."""
    rows: dict[tuple, dict[str, str]] = {}
    for result in results:
        what = {name: str(result[name]) for name in ('kernel', 'C', 'L', 'block')}
        taken = '{registers} / {spilled_bytes} / {shared:.0f}'.format(**result, shared=result['shared_bytes'] / 1024)
        row = rows.setdefault(tuple(what.values()), what | {f'sm_{sm}': '' for sm in SHARED_KB})
        row[f'sm_{result["sm"]}'] = taken
    return list(rows.values())
