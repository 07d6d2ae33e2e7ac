"""Print tables of finished runs: ``vt report COMMAND ...``."""

import argparse
from pathlib import Path

from vt.commands.arguments import ToolParser, run
from vt.hints import as_typed


def parse_args() -> argparse.Namespace:
    parser = ToolParser('Print tables of finished runs.', 'vt report runs work_dirs/*')
    commands = parser.add_subparsers(dest='command', required=True)

    def add(name: str, help: str, example: str) -> ToolParser:
        return commands.add_parser(name, help=help, description=f'{help.capitalize()}.', example=f'vt report {example}')

    runs = add('runs', 'compare finished runs in a table', 'runs work_dirs/*')
    runs.add_argument('work_dirs', nargs='+', type=Path, help='work directories of trained and benchmarked models')
    scores = add(
        'scores', 'tabulate scores of finished runs, one row per label', 'scores work_dirs/*_seed-* --out scores.json'
    )
    scores.add_argument('work_dirs', nargs='+', type=Path, help='work directories of trained models, LABEL_seed-SEED')
    scores.add_argument('--out', type=Path, help='JSON file for the records of the runs')
    sweep = add(
        'sweep',
        'compare the runs of a sweep, and their scores with their costs',
        'sweep work_dirs/sweeps/vt-resnet18_digits --out report',
    )
    sweep.add_argument('folder', type=Path, help=f'folder of {as_typed("vt sweep")}')
    sweep.add_argument('--out', type=Path, help='folder for the table (.md, .csv)')
    for command in (runs, scores, sweep):
        command.add_common_options(config=False, checkpoint=False)
    return parser.parse_args()


if __name__ == '__main__':
    args = parse_args()
    run(f'reports:report_{args.command}', args)
