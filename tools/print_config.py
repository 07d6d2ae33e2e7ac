"""Print the complete config of a run, and which step set what: ``vt print-config CONFIG``."""

import argparse

from vt.commands.arguments import CONFIG, ToolParser, run


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Print the complete config of a run, as Python, and which step set what.',
        'vt print-config vt-resnet18_digits --cfg-options image_size=64 train_cfg.max_epochs=5',
    )
    parser.add_argument('config', help=CONFIG)
    parser.add_run_options()
    return parser.parse_args()


if __name__ == '__main__':
    run('print_config:print_config', parse_args())
