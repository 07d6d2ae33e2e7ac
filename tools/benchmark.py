"""Compare the cost of models in one run: ``python tools/benchmark.py CONFIG [CONFIG ...]``."""

import argparse

from vt.commands.arguments import ToolParser, run


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Compare the speed and memory of models in one interleaved run, relative to the first model.',
        'python tools/benchmark.py configs/baselines/resnet18_8xb32-90e_in1k.py \\\n'
        '      configs/vt_resnet/vt-resnet18_8xb32-90e_in1k.py torchvision:resnet18 --batch-sizes 1 8',
    )
    parser.add_argument(
        'configs',
        nargs='+',
        metavar='CONFIG',
        help='paths of configs, whose data are not read; or torchvision:MODEL, timm:MODEL, mmpretrain:MODEL',
    )
    what = parser.add_argument_group('what is measured')
    what.add_argument(
        '--only',
        nargs='+',
        choices=['whole', 'neck', 'backbone'],
        help='parts to time (default: the whole model, and the neck if all models have one)',
    )
    what.add_argument(
        '--kinds', nargs='+', choices=['inference', 'training'], default=['inference', 'training'], help='default: both'
    )
    what.add_argument('--num-classes', type=int, help='number of classes of the head (default: as in the config)')
    what.add_argument('--tokens', type=int, nargs='+', default=[], help='numbers of tokens of VT models to compare')
    what.add_argument('--no-memory', action='store_true', help='do not measure peak memory, in one process per model')
    how = parser.add_argument_group('settings; every combination of several values is measured')
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
    how.add_argument(
        '--memory-formats',
        nargs='+',
        choices=['channels_last', 'contiguous'],
        default=['channels_last'],
        help='memory format of weights and images (default: channels_last, as in tools/train.py)',
    )
    how.add_argument(
        '--compile',
        nargs='*',
        default=['off'],
        metavar='MODE',
        help="modes of torch.compile, of which reduce-overhead uses CUDA graphs; 'off'; 'tokens': only the relations; "
        "'pixels': only products of pixels and tokens, on a CPU (without a mode: default)",
    )
    how.add_argument(
        '--token-products',
        nargs='+',
        choices=['auto', 'blas', 'onednn'],
        default=['auto'],
        help='library for products of tokens on a CPU (default: auto, the faster one, as in tools/train.py)',
    )
    how.add_argument('--fuse-conv-bn', action='store_true', help='fold normalisations into convolutions in inference')
    how.add_argument('--default-allocator', action='store_true', help='do not let glibc keep freed memory')
    measurement = parser.add_argument_group('measurement')
    measurement.add_argument('--rounds', type=int, default=30, help='measured steps of each model (default: 30)')
    measurement.add_argument('--seconds', type=float, default=120, help='time limit per table, about (default: 120)')
    measurement.add_argument('--out', help='JSON file for the measurements')
    parser.add_common_options(config=False, checkpoint=False)
    args = parser.parse_args()
    args.compile, args.meter = args.compile or ['default'], None
    return args


if __name__ == '__main__':
    run('benchmarks:benchmark', parse_args())
