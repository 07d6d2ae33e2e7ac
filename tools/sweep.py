"""Train a config with every combination of settings and seeds: ``vt sweep CONFIG KEY=VALUE,VALUE ...``."""

import argparse

from vt.commands.arguments import CONFIG, ToolParser, run


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Train a config with every combination of settings and seeds, or continue such a sweep.',
        'vt sweep vt-resnet18_digits model.backbone.num_tokens=8,16 --seeds 0:3',
    )
    parser.add_argument('config', help=CONFIG)
    parser.add_argument(
        'settings', nargs='*', metavar='KEY=VALUE,VALUE', help='keys of the config, as in --cfg-options, and values'
    )
    runs = parser.add_argument_group('runs')
    runs.add_argument('--seeds', default='0', help='0:3 for 0, 1 and 2, or a list such as 0,4 (default: 0)')
    runs.add_argument('--work-dir', help='folder of all runs (default: work_dirs/sweeps/<config name>)')
    runs.add_argument('--jobs', type=int, help='runs at a time (default: the number of GPUs, or of cores)')
    parser.add_common_options(config=False, checkpoint=False)
    return parser.parse_intermixed_args()


if __name__ == '__main__':
    run('sweep:sweep', parse_args())
