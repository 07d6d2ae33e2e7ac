"""Tables of what was measured: ``python tools/report.py COMMAND ...``; ``--help`` names the commands."""

import argparse
from pathlib import Path

DOCS = Path(__file__).parents[1] / 'docs'


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Tables of what was measured.')
    commands = parser.add_subparsers(dest='command', required=True)
    runs = commands.add_parser('runs', help='lay finished runs side by side')
    runs.add_argument('work_dirs', nargs='+', type=Path, help='work directories of trained and benchmarked models')
    scores = commands.add_parser('scores', help='scores of finished runs, a row for the seeds of each')
    scores.add_argument('work_dirs', nargs='+', type=Path, help='work directories of trained models, LABEL_seed-SEED')
    scores.add_argument('--out', type=Path, help='JSON file for their records')
    sweep = commands.add_parser('sweep', help="lay a sweep's runs side by side, scores against costs")
    sweep.add_argument('folder', type=Path, help='folder of tools/sweep.py')
    sweep.add_argument('--out', type=Path, help='directory for the table (.md, .csv) and the picture')
    commands.add_parser('pages', help='write every score in README and docs from docs/records')
    commands.add_parser('complexity', help="lay our models' FLOPs and parameters beside the paper's")
    ablation = commands.add_parser('ablation', help="lay finished runs beside the paper's ablations")
    ablation.add_argument('runs', nargs='+', type=Path, help='work directories of trained models, or files of records')
    ablation.add_argument(
        '--speed', nargs='+', type=Path, default=[], help='what tools/benchmark.py --out wrote of them'
    )
    ablation.add_argument('--out', type=Path, help='directory for the tables (.md, .csv) and the picture')
    ablation.add_argument('--page', type=Path, help='Markdown page whose marked places take the tables')
    performance = commands.add_parser('performance', help='write the page on performance from its measurements')
    performance.add_argument('--data', type=Path, default=DOCS / 'benchmarks', help='folder of the measurements')
    performance.add_argument('--page', type=Path, default=DOCS / 'performance.md', help='Markdown page to write')
    performance.add_argument('--readme', type=Path, help='Markdown page whose marked place takes the summary')
    survey = commands.add_parser('survey', help="write the tables of the survey's systems")
    claims = commands.add_parser('claims', help="measure the survey's claims, and write their table")
    claims.add_argument(
        '--runs',
        type=Path,
        default=DOCS.parent / 'work_dirs/reproduce/survey-claims',
        help='folder of the trained runs (default: work_dirs/reproduce/survey-claims)',
    )
    mvit = commands.add_parser('mvit', help='write the tables of multiscale vision transformers')
    survey.add_argument('--twins', action='store_true', help="compare with timm's models anew; needs timm, a minute")
    export = commands.add_parser('export', help='write the table of exported models from its measurements')
    pages_of = ((survey, 'survey.md'), (claims, 'survey.md'), (mvit, 'mvit.md'), (export, 'export.md'))
    for command, page in pages_of:
        command.add_argument('--page', type=Path, default=DOCS / page, help='Markdown page whose marks take them')
    for command in commands.choices.values():
        command.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    args = parse_args()
    run(f'reports:report_{args.command}', args)
