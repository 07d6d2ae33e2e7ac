"""Tables of what was measured: ``python tools/report.py {runs,complexity,ablation} ...``."""

import argparse
from pathlib import Path

CONFIGS = Path(__file__).parents[1] / 'configs'


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Tables of what was measured.')
    commands = parser.add_subparsers(dest='command', required=True)
    runs = commands.add_parser('runs', help='lay finished runs side by side')
    runs.add_argument('work_dirs', nargs='+', type=Path, help='work directories of trained and benchmarked models')
    complexity = commands.add_parser('complexity', help="lay our models' FLOPs and parameters beside the paper's")
    ablation = commands.add_parser('ablation', help="lay finished runs beside the paper's ablations")
    ablation.add_argument('runs', nargs='+', type=Path, help='work directories of trained models, or a results.json')
    ablation.add_argument(
        '--speed', nargs='+', type=Path, default=[], help='what tools/benchmark.py --out wrote of them'
    )
    ablation.add_argument('--out', type=Path, help='directory for the tables (.md, .csv), the picture and the records')
    ablation.add_argument('--page', type=Path, help='Markdown page whose marked places take the tables')
    for command in (runs, complexity, ablation):
        command.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    from vt.engine.errors import one_line_errors

    with one_line_errors('report', args.traceback):
        from vt.apis import report

        if args.command == 'runs':
            report.report_runs(args.work_dirs)
        elif args.command == 'complexity':
            report.report_complexity(CONFIGS)
        else:
            report.report_ablation(args.runs, args.speed, args.out, args.page)


if __name__ == '__main__':
    main()
