"""What the Triton kernels take of a GPU that need not be here: ``python tools/benchmark_kernels.py``."""

import argparse
from pathlib import Path


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description='Compile every Triton kernel for several GPUs, of which none need be here.'
    )
    parser.add_argument('--out', help='write the figures to this JSON file')
    parser.add_argument('--page', type=Path, help='Markdown page whose marked place takes the table')
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('benchmarks:benchmark_kernels', parse_args())
