"""How fast training images or videos load, without a model: ``python tools/benchmark_data.py CONFIG [CONFIG ...]``."""

import argparse


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time configs' training data alone.")
    parser.add_argument('configs', nargs='+', help='paths of configs')
    parser.add_argument(
        '--synthetic',
        type=int,
        metavar='N',
        help="classify N JPEG files of ImageNet's usual size, or videos of Kinetics', made here, in place of the "
        "config's own",
    )
    parser.add_argument('--workers', type=int, nargs='+', default=[0, 2], help='loading processes (default: 0 2)')
    parser.add_argument(
        '--decoders',
        nargs='+',
        choices=['cv2', 'pillow', 'turbojpeg', 'opencv', 'pyav', 'torchcodec'],
        help="of mmcv, which read image files, the first three; of videos the others (default: the config's)",
    )
    parser.add_argument('--load-only', action='store_true', help='leave out the transforms behind reading the files')
    parser.add_argument('--batches', type=int, default=20, help='batches timed in a round (default: 20)')
    parser.add_argument('--rounds', type=int, default=5, help='rounds, in which all take turns (default: 5)')
    parser.add_argument('--out', help='write the figures to this JSON file')
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('benchmarks:benchmark_data', parse_args())
