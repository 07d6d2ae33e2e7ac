"""Test a checkpoint, and measure the cost of its model: ``vt test CONFIG CHECKPOINT [--benchmark]``."""

import argparse

from vt.commands.arguments import ToolParser, run


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Test a checkpoint, and measure the cost of its model.',
        'vt test vt-resnet18_digits work_dirs/vt-resnet18_digits/epoch_15.pth --report report',
    )
    parser.add_model_arguments()
    results = parser.add_argument_group('results')
    results.add_argument('--out', help='file for the metrics, .json, or the predictions, .pkl; of a segmentor a folder')
    results.add_argument('--show-dir', help='folder for figures of the predictions')
    results.add_argument('--report', help='folder for report.html and report.json: scores of each class, worst images')
    results.add_argument('--compare', help='folder of the report of another checkpoint, to show the differences')
    results.add_argument(
        '--heat-maps',
        nargs='?',
        const='gradcam',
        metavar='METHOD',
        help='show in the report which pixels contribute to the predicted class (default method: gradcam)',
    )
    results.add_argument(
        '--benchmark',
        action='store_true',
        help='also measure FLOPs, parameters, latency, throughput and memory of a GPU; write <work dir>.benchmark.json',
    )
    parser.add_argument_group('testing').add_argument(
        '--tta', action='store_true', help='test-time augmentation of the config, or flips'
    )
    parser.add_run_options()
    return parser.parse_args()


if __name__ == '__main__':
    run('test:test', parse_args())
