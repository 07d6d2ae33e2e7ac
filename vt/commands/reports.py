"""Commands of ``vt report``: tables of finished runs."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from vt.analysis.scores import describe, describe_origin, describe_runs, describe_sweep, label_run, read_each, read_run
from vt.analysis.tables import print_table, to_csv, to_markdown
from vt.engine.hooks.curves import RESULTS, draw_curves, read_results, save_figure
from vt.engine.run.work_directory import RECORD
from vt.errors import MissingFileError, UserError
from vt.files import write_atomically, write_json
from vt.hints import as_typed

from .sweep import read_order

FIGURES = ('.png', '.svg', '.pdf')


def report_runs(args: argparse.Namespace) -> None:
    """Print a table of finished runs; draw the curves of all runs, finished or not, to ``--out``."""
    runs, unread = read_each(read_run, args.work_dirs)
    if runs:
        print_table(describe_runs(runs), title='Finished runs')
    if args.out:
        if args.out.suffix not in FIGURES:
            raise UserError(f'--out {args.out} must end in {", ".join(FIGURES)}')
        found, unread = read_each(lambda path: (path, read_results(path / RESULTS)), args.work_dirs)
        names = [path.name for path, _ in found]
        curves = {path.name if names.count(path.name) == 1 else str(path): rows for path, rows in found}
        if curves:
            save_figure(draw_curves(curves), args.out)
            print(f'written to {args.out}')
    _name(unread)


def report_scores(args: argparse.Namespace) -> None:
    """Print scores of finished runs, one row per label; write their records to ``--out``."""
    records, unread = _read_labelled(args.work_dirs)
    print_table(describe(records), title='Scores', notes=[describe_origin(records)])
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        write_json(records, args.out, indent=1)
        print(f'written to {args.out}')
    _name(unread)


def report_sweep(args: argparse.Namespace) -> None:
    """Print a table of a sweep's finished runs, and write it to ``--out``."""
    order = {label: place for place, label in enumerate(read_order(args.folder))}
    finished = sorted(path.parent for path in args.folder.glob(f'*/{RECORD}'))
    finished.sort(key=lambda path: order.get(path.name.rsplit('_seed-', 1)[0], len(order)))
    if not finished:
        again = as_typed('vt sweep CONFIG KEY=VALUE,VALUE')
        raise MissingFileError(f'there is no finished run in {args.folder}: train first with {again}')
    records, unread = _read_labelled(finished)
    left = sorted({path.parent.name for path in args.folder.glob('*/output.txt') if path.parent not in finished})
    rows = describe_sweep(records)
    notes = [describe_origin(records), *([f'Not finished: {", ".join(left)}.'] if left else [])]
    print_table(rows, title=str(args.folder), notes=notes)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        write_atomically(args.out / 'sweep.md', '\n\n'.join([to_markdown(rows), *notes]) + '\n')
        write_atomically(args.out / 'sweep.csv', to_csv(rows))
        print(f'written to {args.out}')
    _name(unread)


def _read_labelled(work_dirs: Sequence[Path]) -> tuple[list[dict], list[str]]:
    """Return records of runs, labelled by folder, and errors of unreadable ones; raise them if none is readable."""
    found, unread = read_each(label_run, work_dirs)
    if not found:
        _name(unread)
    return found, unread


def _name(unread: Sequence[str]) -> None:
    """Raise the errors of unreadable runs as one UserError."""
    if unread:
        raise UserError('; '.join(unread))
