"""Write every page of this repository: ``python -m docs.reports``; ``--help`` names what else there is."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from vt.analysis.figures import save_figure
from vt.analysis.scores import read_each
from vt.analysis.tables import print_table
from vt.engine.reporting import one_line_errors
from vt.errors import UserError
from vt.files import read_json, write_atomically

from . import ablations, benchmark, complexity, forward_files, model_pages, survey
from .markdown import ROOT
from .pages import render
from .records import lay_out, write_measured


def write_pages(args: argparse.Namespace) -> None:
    """Write README, docs, headers and pages of configs, and the metafile from the records and measurements."""
    for path, text in render().items():
        write_atomically(ROOT / path, text)
    for path, figure in benchmark.draw().items():
        save_figure(figure, ROOT / path, dpi=80)


def write_models(args: argparse.Namespace) -> None:
    """Write the page of each folder of ``configs`` and the metafile, all models counted and traced; a few minutes."""
    if not args.known:
        write_atomically(forward_files.RECORD, forward_files.record_files(model_pages.representatives()))
    for path, text in model_pages.render(None if args.known else {}).items():
        write_atomically(path, text)


def train_tables(args: argparse.Namespace) -> None:
    """Train tables again, write their records, measure what the pages show of their models, and write the pages.

    A finished run is skipped, an interrupted one is resumed.
    """
    from .train import read_tables, train

    train(args, read_tables())
    write_pages(args)


def print_ablations(args: argparse.Namespace) -> None:
    """Accuracy, FLOPs, parameters and speed of finished runs beside the paper's tables; write them on request.

    Raises:
        UserError: no two runs belong to one of the paper's tables; or, at the end, a run that can't be read.
    """
    found, unread = read_each(ablations.read_run, args.runs)
    if found:
        tasks = ablations.compare_all(ablations.arrange(record for records in found for record in records))
        tables = ablations.tabulate(tasks, args.speed)
        for title, rows in (item for task in tables.values() for item in task.items()):
            print_table(rows, title)
        if args.out:
            args.out.mkdir(parents=True, exist_ok=True)
            write_atomically(args.out / 'tables.md', '\n'.join(map(ablations.to_markdown, tables.values())))
            write_atomically(args.out / 'tables.csv', ablations.to_csv(tables))
            save_figure(ablations.draw(tasks), args.out / 'changes.png')
    if unread:
        raise UserError('; '.join(unread))


def print_complexity(args: argparse.Namespace) -> None:
    """FLOPs and parameters of our models beside the paper's tables 1 to 10."""
    for title, rows, notes in complexity.all_tables():
        print_table(rows, title, notes)


def measure_references(args: argparse.Namespace) -> None:
    """Compare the survey's models that timm has with timm's."""
    write_measured(survey.DIFFERENCES, differences=survey.measure_references())


def lay_out_files(args: argparse.Namespace) -> None:
    """Write JSON files of measurements with one line per row, as those of tools/benchmark.py --out before a commit."""
    for path in args.files:
        write_atomically(path, lay_out(read_json(path, 'give a file of measurements', shape=dict)))


def parse_args(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='python -m docs.reports', description=write_pages.__doc__)
    parser.set_defaults(function=write_pages)
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    commands = parser.add_subparsers(title='in place of that')

    def add(name: str, function) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=function.__doc__.split('\n')[0], description=function.__doc__)
        command.set_defaults(function=function)
        return command

    models = add('models', write_models)
    models.add_argument('--known', action='store_true', help='keep the parameters and FLOPs that the metafile has')
    tables = add('train', train_tables)
    tables.add_argument('tables', nargs='*', help='names in docs/reports/runs (default: all)')
    tables.add_argument('--jobs', type=int, help='runs at a time (default: as many as GPUs, or cores, are there)')
    ablation = add('ablation', print_ablations)
    ablation.add_argument('runs', nargs='+', type=Path, help='work directories of trained models, or files of records')
    ablation.add_argument('--speed', nargs='+', type=Path, default=[], help='files of tools/benchmark.py --out')
    ablation.add_argument('--out', type=Path, help='directory for the tables (.md, .csv) and the figure')
    add('complexity', print_complexity)
    add('references', measure_references)
    add('layout', lay_out_files).add_argument('files', nargs='+', type=Path, help='files, written in place')
    return parser.parse_args(arguments)


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('reports', args.traceback):
        args.function(args)
