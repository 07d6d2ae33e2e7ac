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
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import IterBasedTrainLoop, Runner

from vt.engine.reporting import in_one_line
from vt.files import parse_errors, write_atomically
from vt.registry import HOOKS

RESULTS, CURVES = 'results.csv', 'curves.png'
STEPS = ('epoch', 'iteration')  # columns that are whole numbers; an epoch only in runs by epochs
PANELS = ('loss', 'score', 'learning rate')
POINTS = 100  # of a run by iterations without validation
MOST_SCORES = 8  # that are drawn
HIGHEST = 1e38  # value that is drawn
SHARE = 1 / 200  # of the time of a run, most, that figures take
Row = dict[str, float]


@HOOKS.register_module()
class CurvesHook(Hook):
    """Write losses, scores and learning rate of each validation to ``results.csv``, and draw them in ``curves.png``.

    Both files are replaced after a validation, the figure less often if epochs are short, and at the end. A run without
    validation writes them at its end. A resumed run continues them. A file that cannot be written is one warning.
    """

    priority = 'LOWEST'
    _rows: list[Row] | None = None
    _next = -math.inf  # time of the next figure

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
        if time.monotonic() >= self._next:
            self._draw(runner)

    def _end(self, runner: Runner) -> None:
        if not self._rows:
            self._rows = self._resumed(runner) or _rows_of_history(runner)
            write_results(Path(runner.work_dir, RESULTS), self._rows)
        self._draw(runner)

    def _draw(self, runner: Runner) -> None:
        begun = time.monotonic()
        save_figure(draw_curves({'': self._rows or []}), Path(runner.work_dir, CURVES))
        self._next = time.monotonic() + (time.monotonic() - begun) / SHARE

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


def draw_curves(runs: Mapping[str, Sequence[Row]]) -> Figure:
    """Draw losses, scores and learning rates of runs side by side.

    Args:
        runs: rows of each run by its name. Of several runs only the main losses and the first score are drawn.
    """
    figure = Figure(figsize=(14, 4), layout='constrained')
    panels = dict(zip(PANELS, figure.subplots(1, 3)))
    step = 'epoch' if all('epoch' in row for rows in runs.values() for row in rows) else 'iteration'
    for run, rows in runs.items():
        for panel, names in _names_by_panel(rows, is_one=len(runs) == 1).items():
            for name in names:
                plot(panels[panel], rows, step, name, ': '.join(filter(None, (run, name))))
    for title, axes in panels.items():
        finish(axes, title, step)
    return figure


def draw_rates(axes: Axes, rows: Sequence[Row]) -> None:
    """Draw the learning rates of a schedule."""
    plot(axes, rows, step := next(iter(rows[0])), 'lr', '')
    finish(axes, PANELS[2], step)


def plot(axes: Axes, rows: Sequence[Row], step: str, name: str, label: str) -> None:
    """Draw a column of a table; what is not a number, or not of float32, is a gap in the curve."""
    values = np.array([row.get(name, math.nan) for row in rows], float)
    values[~(np.abs(values) < HIGHEST)] = math.nan
    marker = 'o' if len(rows) < 50 else ''
    axes.plot([row[step] for row in rows], values, label=label.replace('$', r'\$'), marker=marker, markersize=3)


def finish(axes: Axes, title: str, step: str) -> None:
    """Name the axes and the curves; the only curve of a figure is named by the title."""
    axes.set(title=title, xlabel=step)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    if len(axes.lines) == 1 and title != PANELS[2]:
        axes.set_title(axes.lines[0].get_label())
    elif len(axes.lines) > 1:
        axes.legend(fontsize='small')


def _names_by_panel(rows: Sequence[Row], is_one: bool) -> dict[str, list[str]]:
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in (*STEPS, 'lr')]
    losses = [name for name in names if 'loss' in name and (is_one or name in ('loss', 'val/loss'))]
    scores = [name for name in names if 'loss' not in name][: MOST_SCORES if is_one else 1]
    return dict(zip(PANELS, (losses, scores, ['lr'])))


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the path's suffix, such as ``.png``."""
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', UserWarning)  # about characters that are missing in the font
        figure.savefig(content, format=path.suffix[1:], dpi=80)
    write_atomically(path, content.getvalue())
