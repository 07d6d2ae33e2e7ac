"""Compare models' cost side by side in one run: ``python tools/benchmark.py CONFIG [CONFIG ...]``."""

import argparse


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare models' cost side by side, the first one as the reference.")
    parser.add_argument(
        'configs',
        nargs='+',
        help='paths of configs, whose data are not read; or torchvision:MODEL, timm:MODEL, mmpretrain:MODEL',
    )
    what = parser.add_argument_group('what is measured')
    what.add_argument(
        '--only',
        nargs='+',
        choices=['whole', 'neck', 'backbone'],
        help='parts, timed alone (default: the whole, and the neck where all models have one)',
    )
    what.add_argument(
        '--kinds', nargs='+', choices=['inference', 'training'], default=['inference', 'training'], help='default: both'
    )
    what.add_argument('--num-classes', type=int, help="classes of the head (default: the config's)")
    what.add_argument('--tokens', type=int, nargs='+', default=[], help='numbers of tokens of VT models, side by side')
    what.add_argument('--no-memory', action='store_true', help='leave peak memory out, which takes a process a model')
    how = parser.add_argument_group('settings; of several, every combination is a run')
    how.add_argument('--batch-sizes', type=int, nargs='+', default=[8], help='images in a step (default: 8)')
    how.add_argument(
        '--sizes',
        nargs='+',
        default=['224'],
        help='of images: 224, or height and width as 800x1216; of clips: 16x224x224 (default: 224)',
    )
    how.add_argument(
        '--dtypes',
        nargs='+',
        choices=['float32', 'tf32', 'bfloat16', 'float16'],
        help='tf32: float32 with TensorFloat-32 products, as runs have it on a GPU; float32: with exact ones; the '
        'lower ones by autocast, as --amp has it; weights stay in float32 (default: tf32 on a GPU, float32 on a CPU)',
    )
    how.add_argument('--devices', nargs='+', help='such as cpu cuda (default: the GPU where there is one)')
    how.add_argument(
        '--memory-formats',
        nargs='+',
        choices=['channels_last', 'contiguous'],
        default=['channels_last'],
        help='of weights and images (default: channels_last, as tools/train.py has it)',
    )
    how.add_argument(
        '--compile',
        nargs='*',
        default=['off'],
        metavar='MODE',
        help="modes of torch.compile, 'off', 'tokens', the relations alone, and 'pixels', where pixels meet "
        'tokens on a CPU; without a mode: default. '
        'reduce-overhead: CUDA graphs',
    )
    how.add_argument(
        '--token-products',
        nargs='+',
        choices=['auto', 'blas', 'onednn'],
        default=['auto'],
        help='who multiplies tokens and matrices on a CPU (default: auto, the faster one, as tools/train.py has it)',
    )
    how.add_argument('--fuse-conv-bn', action='store_true', help='in inference, fold normalisations into convolutions')
    how.add_argument('--default-allocator', action='store_true', help="don't let glibc keep freed memory")
    run = parser.add_argument_group('the run')
    run.add_argument('--rounds', type=int, default=30, help='measured steps of each model (default: 30)')
    run.add_argument('--seconds', type=float, default=120, help='at most about this long a table (default: 120)')
    run.add_argument('--out', help='write the figures to this JSON file')
    run.add_argument('--plot', help='draw time over resolutions and over tokens to this file')
    run.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    args = parser.parse_args()
    args.compile = args.compile or ['default']
    return args


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('benchmarks:benchmark', parse_args())
