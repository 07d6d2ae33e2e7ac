"""Measure VT on a GPU, in at most 430 seconds: ``python -m projects.speed.gpu_report FOLDER``."""

import argparse
from pathlib import Path

from vt.commands.arguments import ToolParser
from vt.engine.reporting import one_line_errors

from .gpu_process import gpu_report


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Measure VT on a GPU: kernels, necks, classifiers, operations, training runs and torch.compile.',
        'python -m projects.speed.gpu_report projects/speed/measured/my-card --seconds 300',
    )
    parser.add_argument('folder', type=Path, help='folder for measured.json, log.txt and records of training runs')
    settings = parser.add_argument_group('settings')
    settings.add_argument('--seconds', type=float, default=430, help='time limit (default: 430)')
    settings.add_argument('--dry', action='store_true', help='test run on the CPU, in the smallest sizes')
    parser.add_common_options(config=False, checkpoint=False)
    return parser.parse_args()


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('gpu_report', args.traceback):
        gpu_report(args)
