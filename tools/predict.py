"""Predict on images or videos of your own: ``python tools/predict.py CONFIG CHECKPOINT INPUT ...``."""

import argparse
from pathlib import Path


def parse_args() -> argparse.Namespace:
    from vt.commands.arguments import ConfigOptions, add_trust_argument

    parser = argparse.ArgumentParser(description='Predict on images or videos of your own.')
    parser.add_argument('config', help='path of the config, name of a model, or folder of a saved one')
    parser.add_argument(
        'checkpoint',
        help='path of the checkpoint, or that folder again; or timm, torchvision or huggingface: their weights',
    )
    parser.add_argument(
        'inputs', nargs='+', metavar='INPUT', help='images, videos for a model of videos, folders, or patterns'
    )
    parser.add_argument('--out', type=Path, help='file for the results, .json or .csv')
    parser.add_argument('--out-dir', type=Path, help='folder for figures: images with their class or segments')
    parser.add_argument('--masks', type=Path, help='folder for masks: PNG with a palette, GeoTIFF of a GeoTIFF')
    parser.add_argument('--show', action='store_true', help='show these figures in the terminal')
    parser.add_argument('--top-k', type=int, default=5, help='number of classes to name (default: 5)')
    parser.add_argument(
        '--threshold',
        help='of several labels an image: the score from which on a label is predicted (default: 0.5), or '
        "a report.json of tools/test.py --report, for each class's best",
    )
    parser.add_argument('--batch-size', type=int, default=8, help='files at a time (default: 8)')
    parser.add_argument('--device', help='where to compute (default: a GPU where there is one)')
    parser.add_argument(
        '--cfg-options', nargs='+', action=ConfigOptions, help='settings that override the config, as key=value'
    )
    add_trust_argument(parser)
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('predict:predict', parse_args())
