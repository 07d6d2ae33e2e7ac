"""List registers and shared memory of every Triton kernel: ``python -m projects.speed.kernels``.

Letters as in ``vt/ops/triton_kernels.py``.
"""

import argparse
import re
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import triton
from rich.progress import track
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel

from docs.reports.records import write_measured
from vt.analysis.tables import print_table
from vt.cli.parser import CommandParser
from vt.engine.reporting import one_line_errors
from vt.ops import triton_kernels
from vt.ops.triton_path import BACKWARD, FORWARD, combine_blocks, sizes
from vt.paths import check_output

# Ten times the compute capability, and the kB of shared memory that a program may take; code for 8.0 also runs on GPUs
# of 8.6 and 8.9, which have less of it than an A100.
SHARED_KB = {80: 99, 90: 227, 100: 227}
KERNELS = {
    triton_kernels.tokenize_kernel: FORWARD,
    triton_kernels.combine_kernel: combine_blocks(64, 256),
    triton_kernels.project_kernel: FORWARD,
    triton_kernels.tokenize_backward_kernel: BACKWARD,
    triton_kernels.project_backward_kernel: BACKWARD,
}
# Those of the arguments that don't have the map's type.
NUMBERS = ('P0', 'P1', 'P2', 'P3', 'span', 'Q', 'N', 'T', 'levels')
SINGLE = ('split_tokens', 'split_results', 'split_log_sums', 'exact_tokens', 'exact_results', 'log_sums')
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
    constants |= dict.fromkeys(('RESIDUAL', 'ONTO', 'WEIGHTED'), True)
    options = {name: constants[name] for name in ('num_warps', 'num_stages') if name in constants}
    constants = {name: constants[name] for name in kernel.arg_names if name in constants}
    types = {name: OTHER_TYPES.get(name, '*bf16') for name in kernel.arg_names}
    types |= dict.fromkeys(constants, 'constexpr')
    divisible = [name for name, kind in types.items() if kind.startswith('*')]
    aligned = {(kernel.arg_names.index(name),): [['tt.divisibility', 16]] for name in divisible}
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


def main(args: argparse.Namespace) -> None:
    """Compile every Triton kernel for several GPUs; print and write what each takes of one."""
    check_output(args.out)
    results = [measure(*case) for case in track(cases(), 'Compiling')]
    print_table([{name: str(value) for name, value in row.items()} for row in results], 'Triton kernels, of a thread')
    write_measured(args.out, triton=version('triton'), results=results)


def parse_args() -> argparse.Namespace:
    parser = CommandParser(
        'List registers and shared memory of every Triton kernel on several GPUs, compiled without a GPU.',
        'python -m projects.speed.kernels --out kernels.json',
    )
    parser.add_argument('--out', help='JSON file for the measurements')
    parser.add_common_options(config=False, checkpoint=False)
    return parser.parse_args()


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('kernels', args.traceback):
        main(args)
