"""Draw which pixels contribute to a class: ``python tools/analysis/show_heat_maps.py CONFIG CHECKPOINT [IMAGE]``."""

import argparse
from pathlib import Path


def parse_args() -> argparse.Namespace:
    from vt.commands.arguments import ConfigOptions, add_trust_argument

    parser = argparse.ArgumentParser(
        description='Draw which pixels contribute to a class, by Grad-CAM and its kin or attention rollout, on given '
        'images or a few images or videos of the test set.'
    )
    parser.add_argument('config', help='path of the config')
    parser.add_argument('checkpoint', help='path of the checkpoint; or timm, torchvision or huggingface: their weights')
    parser.add_argument(
        'inputs', nargs='*', type=Path, metavar='IMAGE', help='images, of any size (default: test images)'
    )
    parser.add_argument(
        '--method',
        nargs='+',
        default=['gradcam'],
        help='gradcam (default), gradcam++, hirescam, layercam, xgradcam, eigencam, eigengradcam, elementwise or '
        'rollout; several are drawn side by side',
    )
    parser.add_argument('--target', metavar='CLASS', help='name or number (default: the predicted class of each image)')
    parser.add_argument('--layer', help='name of the layer (default: the last one whose output has places that count)')
    parser.add_argument(
        '--out',
        type=Path,
        help='file to write; .png, .pdf or .svg (default: heat-maps.png in the work directory of the run, else here)',
    )
    parser.add_argument('--images', type=int, default=6, help='number of test images, spread over the classes')
    parser.add_argument(
        '--cfg-options', nargs='+', action=ConfigOptions, help='settings that override the config, as key=value'
    )
    add_trust_argument(parser)
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('attention:show_heat_maps', parse_args())
