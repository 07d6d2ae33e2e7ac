"""Write a teacher's labels for each position of training images: ``python tools/analysis/label_maps.py CONFIG OUT``."""

import argparse

from vt.commands.arguments import ToolParser, run


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        "Write a teacher's labels for each position of the training images, for model.label_file of token labeling.",
        'python tools/analysis/label_maps.py configs/lv_vit/lv-vit-small_digits.py maps.pth',
    )
    parser.add_argument('config', help='path of a config of vt.TokenLabelClassifier with a teacher')
    parser.add_argument('out', help='file to write, such as maps.pth')
    parser.add_argument('--batch-size', type=int, default=64, help='images per batch (default: 64)')
    parser.add_common_options()
    return parser.parse_args()


if __name__ == '__main__':
    run('label_maps:write_label_maps', parse_args())
