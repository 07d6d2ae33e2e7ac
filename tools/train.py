"""Train a model from a config: ``python tools/train.py CONFIG``."""

import argparse


def parse_args() -> argparse.Namespace:
    from vt.commands.arguments import add_common_arguments

    parser = argparse.ArgumentParser(description='Train a model from a config.')
    parser.add_argument('config', help='path of the config')
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='PATH',
        help='go on from a checkpoint; without a path, from the newest one in the work directory',
    )
    parser.add_argument(
        '--new-schedule',
        action='store_true',
        help='with --resume: learning rate, decay and schedule of the config, not those of the checkpoint',
    )
    parser.add_argument('--no-validate', action='store_true', help='do not evaluate during training')
    parser.add_argument('--auto-scale-lr', action='store_true', help="scale the learning rate from the config's batch")
    parser.add_argument(
        '--find-batch-size', action='store_true', help='do not train: find the largest batch that the memory allows'
    )
    parser.add_argument('--skip-data-check', action='store_true', help='do not read some of the data first')
    add_common_arguments(parser)
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('train:train', parse_args())
