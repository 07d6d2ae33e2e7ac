"""Write the data of a config as tar shards with an index: ``python tools/shard.py CONFIG OUT``."""

import argparse
from pathlib import Path

from vt.commands.arguments import ToolParser, run


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Write the data of a config as tar shards in the format of WebDataset, or index existing shards.',
        'python tools/shard.py configs/vt_resnet/vt-resnet18_1xb32-90e_image-folder.py shards \\\n'
        '      --cfg-options data_root=photos',
    )
    parser.add_argument('config', nargs='?', help='path of the config')
    parser.add_argument('out', nargs='?', type=Path, help='folder to write to, with a folder for each split')
    shards = parser.add_argument_group('shards')
    shards.add_argument(
        '--splits',
        nargs='+',
        choices=['train', 'val', 'test'],
        help='splits to write (default: train val)',
    )
    shards.add_argument('--size', type=float, help='MB per shard (default: 500)')
    shards.add_argument('--seed', type=int, help='seed of the shuffling (default: 0)')
    shards.add_argument('--in-order', action='store_true', help='do not shuffle the samples')
    index = parser.add_argument_group('index')
    index.add_argument('--index', metavar='FOLDER', help='only index the shards of a folder or address')
    index.add_argument('--index-file', metavar='FILE', help='with --index: path of the index, if not beside the shards')
    parser.add_common_options(checkpoint=False)
    return parser.parse_args()


if __name__ == '__main__':
    run('shard:shard', parse_args())
