"""Draw pixels that contribute to a class: ``vt show-heat-maps CONFIG CHECKPOINT [IMAGE ...]``."""

import argparse
from pathlib import Path

from vt.commands.arguments import ToolParser, run


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Draw which pixels contribute to a class, by Grad-CAM or related methods.',
        'vt show-heat-maps swin-tiny_16xb64-300e_in1k timm photo.jpg --out heat-maps.png',
    )
    parser.add_model_arguments()
    parser.add_argument(
        'inputs',
        nargs='*',
        type=Path,
        metavar='IMAGE',
        help='images of any size (default: images or videos of the test set)',
    )
    method = parser.add_argument_group('method')
    method.add_argument(
        '--method',
        nargs='+',
        default=['gradcam'],
        help='gradcam (default), gradcamplusplus, hirescam, layercam, xgradcam, eigencam, eigengradcam or '
        'gradcamelementwise; several are drawn side by side',
    )
    method.add_argument('--target', metavar='CLASS', help='name or number of a class (default: the predicted class)')
    method.add_argument('--layer', help='name of the layer (default: the last one whose positions affect the output)')
    figure = parser.add_argument_group('figure')
    figure.add_argument(
        '--out',
        type=Path,
        help='file to write, .png, .pdf or .svg (default: heat-maps.png in the work directory of the config, or here)',
    )
    figure.add_argument(
        '--images', type=int, default=6, help='number of test images, spread over the classes (default: 6)'
    )
    parser.add_common_options()
    return parser.parse_args()


if __name__ == '__main__':
    run('attention:show_heat_maps', parse_args())
