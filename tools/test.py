"""Test a checkpoint, and measure what the model costs: ``python tools/test.py CONFIG CHECKPOINT [--benchmark]``."""

import argparse


def parse_args() -> argparse.Namespace:
    from vt.commands.arguments import add_common_arguments

    parser = argparse.ArgumentParser(description='Test a checkpoint, and measure what the model costs.')
    parser.add_argument('config', help='path of the config')
    parser.add_argument('checkpoint', help='path of the checkpoint; or timm, torchvision or huggingface: their weights')
    parser.add_argument('--out', help='file for the results: .pkl for predictions; .json, .yaml or .pkl for metrics')
    parser.add_argument('--out-item', choices=['metrics', 'pred'], help='what --out holds (default: pred)')
    parser.add_argument('--show-dir', help='directory for figures of the predictions')
    parser.add_argument('--report', help='folder for report.html and report.json: scores of each class, worst images')
    parser.add_argument('--compare', help='folder of the report of another checkpoint: differences to it')
    parser.add_argument(
        '--heat-maps',
        nargs='?',
        const='gradcam',
        metavar='METHOD',
        help='beside the images of the report which pixels contribute to the predicted class (default: gradcam)',
    )
    parser.add_argument('--tta', action='store_true', help="test-time augmentation: the config's, or flips")
    parser.add_argument(
        '--benchmark',
        action='store_true',
        help='also measure FLOPs, parameters, latency, throughput and peak memory, and write <work dir>.benchmark.json',
    )
    add_common_arguments(parser)
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('test:test', parse_args())
