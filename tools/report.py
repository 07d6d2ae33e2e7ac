"""Tables of what was measured: ``python tools/report.py {runs,complexity,ablation,performance} ...``."""

import argparse
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / 'configs'
DOCS = ROOT / 'docs'


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
    performance = commands.add_parser('performance', help='write the page on performance from its measurements')
    performance.add_argument('--data', type=Path, default=DOCS / 'benchmarks', help='folder of the measurements')
    performance.add_argument('--page', type=Path, default=DOCS / 'performance.md', help='Markdown page to write')
    performance.add_argument('--readme', type=Path, help='Markdown page whose marked place takes the summary')
    for command in (runs, complexity, ablation, performance):
        command.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    from vt.engine.errors import one_line_errors

    with one_line_errors('report', args.traceback):
        from vt.commands import report_tables

        if args.command == 'runs':
            report_tables.report_runs(args.work_dirs)
        elif args.command == 'complexity':
            report_tables.report_complexity(CONFIGS)
        elif args.command == 'performance':
            report_tables.report_performance(args.data, DOCS / 'performance.template.md', args.page, args.readme)
        else:
            report_tables.report_ablation(args.runs, args.speed, args.out, args.page)


if __name__ == '__main__':
    main()
