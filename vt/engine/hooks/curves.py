"""``results.csv`` and ``curves.png`` in the folder of a run: its losses, scores and learning rates."""

import csv
import io
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import IterBasedTrainLoop, Runner

from vt.engine.reporting import in_one_line
from vt.files import parse_errors, write_atomically
from vt.registry import HOOKS

RESULTS, CURVES = 'results.csv', 'curves.png'
STEPS = ('epoch', 'iteration')  # columns that are whole numbers; an epoch only in runs by epochs
POINTS = 100  # of a run by iterations without validation
MOST_SCORES = 8  # that are drawn
REDRAW = 20  # seconds between figures of a run with short epochs
Row = dict[str, float]


@HOOKS.register_module()
class CurvesHook(Hook):
    """Write losses, scores and learning rate of each validation to ``results.csv``, and draw them in ``curves.png``.

    Both files are replaced after a validation, the figure at most every ``REDRAW`` seconds and at the end. A run
    without validation writes them at its end. A resumed run continues them. A file that cannot be written is one
    warning.
    """

    priority = 'LOWEST'
    _rows: list[Row] | None = None
    _drawn = -math.inf

    def after_val_epoch(self, runner: Runner, metrics: Mapping[str, Any] | None = None) -> None:
        if runner.iter and is_main_process():  # else there is no training
            attempt(runner, RESULTS, lambda: self._add(runner, metrics or {}))

    def after_train(self, runner: Runner) -> None:
        if is_main_process():
            attempt(runner, RESULTS, lambda: self._end(runner))

    def _add(self, runner: Runner, metrics: Mapping[str, Any]) -> None:
        if self._rows is None:
            self._rows = self._resumed(runner)
        self._rows = [row for row in self._rows if row['iteration'] < runner.iter]
        scalars, before = runner.message_hub.log_scalars, self._rows[-1]['iteration'] if self._rows else 0
        row = _steps(runner, runner.iter)
        row |= {name: float(scalars[f'train/{name}'].mean(int(runner.iter - before))) for name in _losses(scalars)}
        row |= {'lr': float(scalars['train/lr'].current())} if 'train/lr' in scalars else {}
        row |= {name: float(value) for name, value in metrics.items() if np.size(value) == 1}
        self._rows.append(row)
        write_results(Path(runner.work_dir, RESULTS), self._rows)
        if time.monotonic() - self._drawn >= REDRAW:
            self._draw(runner)

    def _end(self, runner: Runner) -> None:
        if not self._rows:
            self._rows = self._resumed(runner) or _rows_of_history(runner)
            write_results(Path(runner.work_dir, RESULTS), self._rows)
        self._draw(runner)

    def _draw(self, runner: Runner) -> None:
        draw_curves({'': self._rows or []}, Path(runner.work_dir, CURVES))
        self._drawn = time.monotonic()

    def _resumed(self, runner: Runner) -> list[Row]:
        path = Path(runner.work_dir, RESULTS)
        rows = read_results(path) if runner.cfg.get('resume') and path.exists() else []
        return [row for row in rows if row['iteration'] <= runner.iter]


def attempt(runner: Runner, name: str, write: Callable[[], None]) -> None:
    """Write a file for people: whatever the error, it is a warning, and the training goes on."""
    try:
        write()
    except Exception as error:
        runner.logger.warning(f'{name} is not up to date: {in_one_line(error)}')


def _steps(runner: Runner, iteration: int) -> Row:
    if isinstance(runner.train_loop, IterBasedTrainLoop):
        return dict(iteration=iteration)
    return dict(epoch=iteration // len(runner.train_dataloader), iteration=iteration)


def _losses(scalars: Mapping[str, Any]) -> list[str]:
    return [name.removeprefix('train/') for name in scalars if name.startswith('train/') and 'loss' in name]


def _rows_of_history(runner: Runner) -> list[Row]:
    """Return the mean losses of each epoch, or of a hundredth of the iterations, of a run without validation."""
    is_by_iteration = isinstance(runner.train_loop, IterBasedTrainLoop)
    size = max(1, runner.max_iters // POINTS) if is_by_iteration else len(runner.train_dataloader)
    logged = {name: buffer.data[0] for name, buffer in runner.message_hub.log_scalars.items()}
    rows = []
    for end in range(size, runner.iter + 1, size):
        parts = {name: values[len(values) - runner.iter + end - size :][:size] for name, values in logged.items()}
        losses = {name: float(np.mean(parts[f'train/{name}'])) for name in _losses(parts)}
        rates = {'lr': float(parts['train/lr'][-1])} if len(parts.get('train/lr', ())) else {}
        rows.append(_steps(runner, end) | losses | rates)
    return rows


def write_results(path: Path, rows: Sequence[Row]) -> None:
    """Write a table with a column for each name."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    table = csv.DictWriter(text, columns, lineterminator='\n')
    table.writeheader()
    for row in rows:
        table.writerow({name: int(value) if name in STEPS else f'{value:.6g}' for name, value in row.items()})
    write_atomically(path, text.getvalue())


def read_results(path: Path) -> list[Row]:
    """Read a table of :func:`write_results`.

    Raises:
        UserError: it is damaged.
        FileError: it cannot be read.
    """
    with parse_errors(path, 'remove it'):
        table = csv.DictReader(io.StringIO(path.read_text('utf-8')))
        rows = [{name: float(value) for name, value in row.items() if value} for row in table]
        return sorted(rows, key=lambda row: row['iteration'])


def draw_curves(runs: Mapping[str, Sequence[Row]], path: Path) -> None:
    """Draw losses, scores and learning rates of runs side by side.

    Args:
        runs: rows of each run by its name. Of several runs only the main losses and the first score are drawn.
        path: file of the figure.
    """
    figure = Figure(figsize=(14, 4), layout='constrained')
    panels = dict(zip(('loss', 'score', 'learning rate'), figure.subplots(1, 3)))
    step = 'epoch' if all('epoch' in row for rows in runs.values() for row in rows) else 'iteration'
    for run, rows in runs.items():
        for panel, names in _names_by_panel(rows, is_one=len(runs) == 1).items():
            for name in names:
                values = np.array([row.get(name, math.nan) for row in rows])
                values[~np.isfinite(values)] = math.nan  # a gap in the curve
                label = ': '.join(filter(None, (run, name))).replace('$', r'\$')
                marker = 'o' if len(rows) < 50 else ''
                panels[panel].plot([row[step] for row in rows], values, label=label, marker=marker, markersize=3)
    for title, axes in panels.items():
        axes.set(title=title, xlabel=step)
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(fontsize='small')
    save_figure(figure, path)


def _names_by_panel(rows: Sequence[Row], is_one: bool) -> dict[str, list[str]]:
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in (*STEPS, 'lr')]
    losses = [name for name in names if 'loss' in name and (is_one or name in ('loss', 'val/loss'))]
    scores = [name for name in names if 'loss' not in name][: MOST_SCORES if is_one else 1]
    return {'loss': losses, 'score': scores, 'learning rate': ['lr']}


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the path's suffix, such as ``.png``."""
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', UserWarning)  # about characters that are missing in the font
        figure.savefig(content, format=path.suffix[1:], dpi=80)
    write_atomically(path, content.getvalue())
