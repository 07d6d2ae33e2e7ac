"""Export a model for other runtimes: ``vt export CONFIG CHECKPOINT``."""

import argparse
from pathlib import Path

from vt.commands.arguments import ToolParser, run


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Export a model for other runtimes, and compare the exported files with the model.',
        'vt export vt-resnet18_digits work_dirs/vt-resnet18_digits/epoch_15.pth --formats onnx --benchmark',
    )
    parser.add_model_arguments()
    files = parser.add_argument_group('files')
    files.add_argument(
        '--formats',
        nargs='+',
        choices=['program', 'onnx', 'int8', 'openvino', 'aot'],
        default=['program', 'onnx'],
        help='torch.export, ONNX, 8-bit ONNX, OpenVINO, AOTInductor (default: program onnx)',
    )
    files.add_argument(
        '--out-dir', type=Path, default=Path('exported'), help='folder for the exported files (default: exported)'
    )
    files.add_argument(
        '--fixed-size', action='store_true', help='only the batch size may vary, the image size is fixed'
    )
    files.add_argument(
        '--calibrate', nargs='+', type=Path, default=[], help='inputs to calibrate int8 (default: 128 training images)'
    )
    comparison = parser.add_argument_group('comparison')
    comparison.add_argument(
        '--inputs', nargs='+', type=Path, default=[], help='images or videos to compare on (default: test images)'
    )
    comparison.add_argument(
        '--tolerance',
        type=float,
        default=1e-4,
        help='largest allowed difference, relative to the largest output (default: 1e-4)',
    )
    comparison.add_argument(
        '--accuracy',
        nargs='?',
        type=int,
        const=0,
        metavar='NUMBER',
        help='score each format on the test set, or on this number of its images',
    )
    comparison.add_argument(
        '--largest-loss', type=float, default=1.0, help='largest allowed loss of int8 in --accuracy (default: 1.0)'
    )
    comparison.add_argument(
        '--benchmark', action='store_true', help='measure the speed of each format and of the model'
    )
    comparison.add_argument('--out', type=Path, help='JSON file for the measurements')
    parser.add_common_options()
    return parser.parse_args()


if __name__ == '__main__':
    run('export:export', parse_args())
