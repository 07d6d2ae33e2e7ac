"""Tables of what was measured: ``python tools/report.py {runs,complexity} ...``."""

import argparse
from pathlib import Path

CONFIGS = Path(__file__).parents[1] / 'configs'


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Tables of what was measured.')
    commands = parser.add_subparsers(dest='command', required=True)
    runs = commands.add_parser('runs', help='lay finished runs side by side')
    runs.add_argument('work_dirs', nargs='+', type=Path, help='work directories of trained and benchmarked models')
    complexity = commands.add_parser('complexity', help="lay our models' FLOPs and parameters beside the paper's")
    for command in (runs, complexity):
        command.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    from vt.engine.errors import one_line_errors

    with one_line_errors('report', args.traceback):
        from vt.apis.report import report_complexity, report_runs

        report_runs(args.work_dirs) if args.command == 'runs' else report_complexity(CONFIGS)


if __name__ == '__main__':
    main()
