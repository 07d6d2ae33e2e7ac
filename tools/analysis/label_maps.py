"""Write what a teacher says of each position of training images: ``python tools/analysis/label_maps.py CONFIG OUT``."""

import argparse


def parse_args() -> argparse.Namespace:
    from vt.commands.arguments import ConfigOptions, add_trust_argument

    parser = argparse.ArgumentParser(
        description="Write the label maps of a token-labeling config's teacher for its training images, as its test "
        'pipeline shows them; model.label_file reads them.'
    )
    parser.add_argument('config', help='path of a config of vt.TokenLabelClassifier with a teacher')
    parser.add_argument('out', help='file to write, such as maps.pth')
    parser.add_argument('--batch-size', type=int, default=64, help='images at once (default: 64)')
    parser.add_argument('--cfg-options', nargs='+', action=ConfigOptions, help='settings that override the config')
    add_trust_argument(parser)
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('label_maps:write_label_maps', parse_args())
