"""Train a model from a config: ``vt train CONFIG``."""

import argparse

from vt.commands.arguments import CONFIG, ToolParser, run


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Train a model from a config.',
        'vt train vt-resnet18_digits --amp --cfg-options train_cfg.max_epochs=5',
    )
    parser.add_argument('config', help=CONFIG)
    resume = parser.add_argument_group('resume')
    resume.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='PATH',
        help='continue from a checkpoint, or the newest one in a folder (without a path, in the work directory)',
    )
    resume.add_argument(
        '--new-schedule',
        action='store_true',
        help='with --resume: use learning rate, decay and schedule of the config instead of those of the checkpoint',
    )
    training = parser.add_argument_group('training')
    training.add_argument('--no-validate', action='store_true', help='do not evaluate during training')
    training.add_argument(
        '--auto-scale-lr', action='store_true', help='scale the learning rate with the batch size, from base_batch_size'
    )
    training.add_argument(
        '--find-batch-size',
        action='store_true',
        help='find the largest batch size that fits into the memory of a GPU, and do not train',
    )
    training.add_argument('--skip-data-check', action='store_true', help='skip the checks of the data and the dry run')
    parser.add_run_options()
    return parser.parse_args()


if __name__ == '__main__':
    args = parse_args()
    run('train:find_batch_size' if args.find_batch_size else 'train:train', args)
