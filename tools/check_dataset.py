"""Read the data of a config once and list problems: ``vt check-dataset CONFIG``."""

import argparse

from vt.commands.arguments import CONFIG, ToolParser, run


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Read all data of a config once, and list problems.',
        'vt check-dataset vt-resnet18_1xb32-90e_image-folder --cfg-options data_root=photos --out data-report',
    )
    parser.add_argument('config', help=CONFIG)
    settings = parser.add_argument_group('settings')
    settings.add_argument(
        '--splits',
        nargs='+',
        choices=['train', 'val', 'test'],
        default=['train', 'val', 'test'],
        help='splits to read (default: all)',
    )
    settings.add_argument('--workers', type=int, help='number of reading threads (default: one per available core)')
    settings.add_argument('--out', help='JSON file for the report, or folder for the report and a page of samples')
    parser.add_common_options(checkpoint=False)
    return parser.parse_args()


if __name__ == '__main__':
    run('check_dataset:check_dataset', parse_args())
