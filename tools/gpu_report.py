"""Measure what a GPU makes of VT, in at most 430 seconds: ``python tools/gpu_report.py FOLDER``."""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description='Measure what a GPU makes of VT: kernels, necks, classifiers, paths, trainings, torch.compile.'
    )
    parser.add_argument(
        'folder', type=Path, help='takes measured.json, log.txt and records of trainings; docs/benchmarks/CARD for docs'
    )
    parser.add_argument('--seconds', type=float, default=430, help='at most, for all of it (default: 430)')
    parser.add_argument('--dry', action='store_true', help='see on the CPU, in the smallest sizes, that it runs')
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    sys.path[:0] = [str(ROOT), str(ROOT / 'tools/benchmark')]  # of a source tree that may not be installed
    from gpu_process import gpu_report

    from vt.engine.errors import one_line_errors

    args = parse_args()
    with one_line_errors('gpu_report', args.traceback):
        gpu_report(args)
