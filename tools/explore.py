"""Look at tokens in a browser, or in a report: ``vt explore CONFIG CHECKPOINT``."""

import argparse
from pathlib import Path

from vt.commands.arguments import ToolParser, run


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Show predictions, attention and relations of tokens on a local web page, or in a report.',
        'vt explore vt-resnet18_digits work_dirs/vt-resnet18_digits/epoch_15.pth --html tokens.html',
    )
    parser.add_model_arguments()
    shown = parser.add_argument_group('models and images')
    shown.add_argument(
        '--compare', nargs=2, metavar=('CONFIG', 'CHECKPOINT'), help='a second model, shown beside the first'
    )
    shown.add_argument(
        '--inputs',
        nargs='+',
        default=[],
        metavar='IMAGE',
        help='images, or folders of images, to show instead of test images',
    )
    shown.add_argument(
        '--images',
        type=int,
        default=6,
        help='number of test images to choose from, spread over the classes (default: 6)',
    )
    output = parser.add_argument_group('page or report')
    output.add_argument('--port', type=int, default=7860, help='port of the page, on 127.0.0.1 (default: 7860)')
    output.add_argument(
        '--html', type=Path, help='write a report of --inputs, or else of test images, to this file instead of a page'
    )
    output.add_argument('--device', help='such as cpu or cuda:0 (default: cpu)')
    parser.add_common_options()
    return parser.parse_args()


if __name__ == '__main__':
    run('explore:explore', parse_args())
