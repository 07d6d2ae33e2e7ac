"""Compare models' cost side by side in one run: ``python tools/benchmark.py CONFIG [CONFIG ...]``."""

import argparse


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare models' cost side by side, the first one as the reference.")
    parser.add_argument('configs', nargs='+', help='paths of configs; no data are read')
    parser.add_argument('--batch-size', type=int, default=8, help='images in a step (default: 8)')
    parser.add_argument('--size', type=int, nargs='+', default=[224], help='height and width (default: 224)')
    parser.add_argument('--num-classes', type=int, help="classes of the head (default: the config's)")
    parser.add_argument('--rounds', type=int, default=30, help='measured steps of each model (default: 30)')
    parser.add_argument('--device', help='default: the GPU where there is one')
    parser.add_argument('--channels-last', action='store_true', help='keep weights and images in channels_last')
    parser.add_argument('--profile', action='store_true', help="also show where each neck's time goes, by operator")
    parser.add_argument('--out', help='write the figures to this JSON file')
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    from vt.engine.errors import one_line_errors

    with one_line_errors('benchmark', args.traceback):
        from vt.apis.benchmark import benchmark

        benchmark(args)


if __name__ == '__main__':
    main()
