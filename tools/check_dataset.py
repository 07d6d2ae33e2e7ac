"""Read the data of a config once and list what is wrong with them: ``python tools/check_dataset.py CONFIG``."""

import argparse


def parse_args() -> argparse.Namespace:
    from vt.commands.arguments import ConfigOptions

    parser = argparse.ArgumentParser(description='Read all data of a config once, and list what is wrong with them.')
    parser.add_argument('config', help='path of the config')
    parser.add_argument('--splits', nargs='+', choices=['train', 'val', 'test'], default=['train', 'val', 'test'])
    parser.add_argument('--workers', type=int, help='processes that read (default: one a core that may be used)')
    parser.add_argument('--out', help='file for the whole report, as JSON; or a folder for that and a page of samples')
    parser.add_argument('--cfg-options', nargs='+', action=ConfigOptions, help='settings that override the config')
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('check_dataset:check_dataset', parse_args())
