"""Predict on your own images or videos: ``vt predict CONFIG CHECKPOINT INPUT ...``."""

import argparse
from pathlib import Path

from vt.commands.arguments import CONFIG, ToolParser, run
from vt.hints import as_typed


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Predict on your own images or videos.',
        'vt predict swin-tiny_16xb64-300e_in1k timm photos --out predictions.csv',
    )
    parser.add_model_arguments(f'{CONFIG}, or folder of a saved model')
    parser.add_argument('inputs', nargs='*', metavar='INPUT', help='images, videos for a video model, or folders')
    results = parser.add_argument_group('results')
    results.add_argument('--out', type=Path, help='file for the predictions, .json or .csv')
    results.add_argument('--out-dir', type=Path, help='folder for figures: images with their class or segments')
    results.add_argument('--masks', type=Path, help='folder for masks: PNG with a palette, or GeoTIFF for a GeoTIFF')
    results.add_argument('--top-k', type=int, default=5, help='number of classes to list (default: 5)')
    results.add_argument(
        '--threshold',
        help='for several labels per image: the score from which a label is predicted (default: 0.5), or a '
        f'report.json of {as_typed("vt test --report")}, for the best threshold of each class',
    )
    settings = parser.add_argument_group('settings')
    settings.add_argument('--batch-size', type=int, default=8, help='files per batch (default: 8)')
    settings.add_argument(
        '--workers', type=int, help='threads that read files ahead; 0 for none (default: one per four cores, at most 8)'
    )
    settings.add_argument('--device', help='such as cpu or cuda:0 (default: a GPU if there is one)')
    settings.add_argument('--amp', action='store_true', help='mixed precision: bfloat16, or float16 on older GPUs')
    parser.add_common_options()
    return parser.parse_intermixed_args()


if __name__ == '__main__':
    run('predict:predict', parse_args())
