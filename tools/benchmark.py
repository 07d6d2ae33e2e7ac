"""Compare the cost of models in one run: ``vt benchmark CONFIG [CONFIG ...]``."""

import argparse

from vt.commands.arguments import ToolParser, run


def add_arguments(parser: ToolParser, models: str = 'configs or names of models; data are not read') -> None:
    """Add models, settings, and how long they are measured."""
    parser.add_argument('configs', nargs='+', metavar='CONFIG', help=models)
    how = parser.add_argument_group('settings; every combination of several values is measured')
    how.add_argument(
        '--kinds', nargs='+', choices=['inference', 'training'], default=['inference', 'training'], help='default: both'
    )
    how.add_argument('--batch-sizes', type=int, nargs='+', default=[8], help='images per step (default: 8)')
    how.add_argument(
        '--sizes',
        nargs='+',
        default=['224'],
        help='image sizes: 224, or height and width as 800x1216; of clips 16x224x224 (default: 224)',
    )
    how.add_argument(
        '--dtypes',
        nargs='+',
        choices=['float32', 'tf32', 'bfloat16', 'float16'],
        help='tf32: float32 with TensorFloat-32 products, as in runs on a GPU; float32: exact products; bfloat16 and '
        'float16: autocast, as with --amp, weights stay in float32 (default: tf32 on a GPU, float32 on a CPU)',
    )
    how.add_argument('--devices', nargs='+', help='such as cpu cuda (default: a GPU if there is one)')
    measurement = parser.add_argument_group('measurement')
    measurement.add_argument('--rounds', type=int, default=30, help='measured steps of each model (default: 30)')
    measurement.add_argument('--seconds', type=float, default=120, help='time limit per table, about (default: 120)')
    measurement.add_argument('--out', help='JSON file for the measurements')


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Compare the speed of models in one interleaved run, relative to the first model.',
        'vt benchmark resnet18_8xb32-90e_in1k vt-resnet18_8xb32-90e_in1k --batch-sizes 1 8',
    )
    add_arguments(parser)
    parser.add_common_options(config=False, checkpoint=False)
    return parser.parse_args()


if __name__ == '__main__':
    run('benchmarks:benchmark', parse_args())
