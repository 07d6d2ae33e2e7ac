"""Write the data of a config as tar shards with an index: ``python tools/shard.py CONFIG OUT``."""

import argparse
from pathlib import Path


def parse_args() -> argparse.Namespace:
    from vt.commands.arguments import ConfigOptions

    parser = argparse.ArgumentParser(description='Write the data of a config as tar shards, as of WebDataset.')
    parser.add_argument('config', nargs='?', help='path of the config')
    parser.add_argument('out', nargs='?', type=Path, help='folder to write to; each split has a folder in it')
    parser.add_argument('--splits', nargs='+', choices=['train', 'val', 'test'], default=['train', 'val'])
    parser.add_argument('--size', type=float, default=500, help='MB of a shard (default: 500)')
    parser.add_argument('--seed', type=int, default=0, help='that samples are shuffled by (default: 0)')
    parser.add_argument('--in-order', action='store_true', help='leave the samples in their order')
    parser.add_argument('--index', metavar='FOLDER', help='only index the shards of a folder, or address')
    parser.add_argument('--index-file', metavar='FILE', help='with --index: its path, if not beside the shards')
    parser.add_argument('--cfg-options', nargs='+', action=ConfigOptions, help='settings that override the config')
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('shard:shard', parse_args())
