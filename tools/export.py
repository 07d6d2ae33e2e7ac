"""Export a model for other runtimes, compared with the model itself: ``python tools/export.py CONFIG CHECKPOINT``."""

import argparse
from pathlib import Path


def parse_args() -> argparse.Namespace:
    from vt.commands.arguments import ConfigOptions, add_trust_argument

    parser = argparse.ArgumentParser(description='Export a model for other runtimes, compared with the model itself.')
    parser.add_argument('config', help='path of the config, or the name of a model')
    parser.add_argument('checkpoint', help='path of the checkpoint; or timm, torchvision or huggingface: their weights')
    parser.add_argument(
        '--formats',
        nargs='+',
        choices=['program', 'onnx', 'int8', 'openvino', 'torchscript', 'aot'],
        default=['program', 'onnx', 'torchscript'],
        help='torch.export, ONNX, ONNX in 8 bits, OpenVINO, a trace, AOTInductor (default: program onnx torchscript)',
    )
    parser.add_argument('--out-dir', type=Path, default=Path('exported'), help='folder for the files')
    parser.add_argument(
        '--inputs', nargs='+', type=Path, default=[], help='images or videos to compare on (default: test images)'
    )
    parser.add_argument(
        '--calibrate', nargs='+', type=Path, default=[], help="inputs for int8's ranges (default: 128 training images)"
    )
    parser.add_argument(
        '--accuracy',
        nargs='?',
        type=int,
        const=0,
        metavar='NUMBER',
        help='score each format on the test set, or on so many of its images',
    )
    parser.add_argument(
        '--largest-loss', type=float, default=1.0, help='of int8, in the score of --accuracy (default: 1.0)'
    )
    parser.add_argument('--fixed-size', action='store_true', help='leave the batch open alone')
    parser.add_argument('--tolerance', type=float, default=1e-4, help='largest difference, of the largest output')
    parser.add_argument('--benchmark', action='store_true', help='time each format beside the model itself')
    parser.add_argument('--benchmark-batch', type=int, default=1, help='images at a time, up to 5 (default: 1)')
    parser.add_argument('--out', type=Path, help='JSON file for what was measured')
    parser.add_argument(
        '--cfg-options', nargs='+', action=ConfigOptions, help='settings that override the config, as key=value'
    )
    add_trust_argument(parser)
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('export:export', parse_args())
