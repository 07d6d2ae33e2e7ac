"""Tables of finished runs: ``python tools/analysis/report.py COMMAND ...``; ``--help`` names the commands."""

import argparse
from pathlib import Path


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Tables of finished runs.')
    commands = parser.add_subparsers(dest='command', required=True)
    runs = commands.add_parser('runs', help='lay finished runs side by side')
    runs.add_argument('work_dirs', nargs='+', type=Path, help='work directories of trained and benchmarked models')
    scores = commands.add_parser('scores', help='scores of finished runs, a row for the seeds of each')
    scores.add_argument('work_dirs', nargs='+', type=Path, help='work directories of trained models, LABEL_seed-SEED')
    scores.add_argument('--out', type=Path, help='JSON file for their records')
    sweep = commands.add_parser('sweep', help="lay a sweep's runs side by side, scores against costs")
    sweep.add_argument('folder', type=Path, help='folder of tools/sweep.py')
    sweep.add_argument('--out', type=Path, help='directory for the table (.md, .csv) and the figure')
    for command in commands.choices.values():
        command.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    args = parse_args()
    run(f'reports:report_{args.command}', args)
