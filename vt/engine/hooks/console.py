"""What a run prints: on a terminal a live line of the training, elsewhere few lines. The log file has everything."""

import contextlib
import logging
import math
import os
import re
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import torch
from mmengine.hooks import CheckpointHook, Hook, LoggerHook
from mmengine.runner import IterBasedTrainLoop, Runner
from rich.console import Console

from vt.engine.reporting import in_one_line
from vt.registry import HOOKS

PROGRESS = re.compile(r'(?:Epoch|Iter)\((\w+)\).*?\[ *(\d+)/(\d+)\]')  # lines of mmengine's LoggerHook
NEVER = re.compile(
    r'^paramwise_options -- |^Checkpoints will be saved to |^Please make sure that the mlflow|be deprecated in future'
)
SAVED = re.compile(r'Saving checkpoint at |The best checkpoint with ')
EVERY = 60  # seconds between lines about the progress
REDRAW = 0.5  # seconds between updates of the live line
BAR = 16  # characters


class ConsoleHandler(logging.StreamHandler):
    """Print messages of a log. Where that is not possible any more, such as after ``| head``, the training goes on.

    Args:
        other: handler that it replaces.

    Attributes:
        is_live: whether a line that changes is below.
    """

    is_live = False

    def __init__(self, other: logging.StreamHandler) -> None:
        super().__init__(other.stream)
        self.setLevel(other.level)
        self.setFormatter(other.formatter)
        self.filters = other.filters

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.print(self.format(record))
        except Exception:
            self.handleError(record)

    def print(self, text: str) -> None:
        """Print a line, with a question mark for what the encoding of the console does not have."""
        self._write(f'{text}\n')

    def _write(self, text: str) -> None:
        encoding = getattr(self.stream, 'encoding', None) or 'utf-8'
        try:
            self.stream.write(text.encode(encoding, 'replace').decode(encoding))
            self.stream.flush()
        except (OSError, ValueError) as error:
            self._stop(error)

    def _stop(self, error: Exception) -> None:
        self.is_live = False
        self.setLevel(logging.CRITICAL + 1)
        with contextlib.suppress(OSError, ValueError):
            print(
                f'warning: nothing more is printed: {in_one_line(error)}; the log file has all lines', file=sys.stderr
            )
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())  # also of what is in its buffer


class TerminalHandler(ConsoleHandler):
    """Print messages without time and name, above a line that changes.

    The line is written with spaces up to the width of the terminal and a carriage return, which every terminal knows.
    """

    def __init__(self, other: logging.StreamHandler) -> None:
        super().__init__(other)
        self.console = Console(file=other.stream)

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        return text if record.levelno == logging.INFO else f'{record.levelname.lower()}: {text}'

    def print(self, text: str) -> None:
        """Print a line above the live one."""
        if self.is_live:
            self.show('')
        super().print(text)

    def show(self, line: str) -> None:
        """Replace the live line."""
        width = self.console.width - 1
        self._write(f'\r{line[:width].ljust(width)}\r')


def is_live_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal on which a line can be replaced."""
    console = Console(file=stream)
    return stream.isatty() and console.is_terminal and not console.is_dumb_terminal


class ConsoleFilter:
    """Choose what is printed: of lines about the progress the last of each epoch or validation, and one a minute.

    Args:
        runner: runner whose log it is.
        handler: handler that prints.
    """

    def __init__(self, runner: Runner, handler: logging.Handler) -> None:
        self.runner, self.handler = runner, handler
        self._printed = -math.inf  # time of the last line about the progress
        self._saved = -1  # epoch of the last line about a checkpoint

    def is_needed(self, record: logging.LogRecord) -> bool:
        """Return whether to print a message."""
        text = record.getMessage()
        is_terminal, is_live = isinstance(self.handler, TerminalHandler), getattr(self.handler, 'is_live', False)
        if NEVER.search(text) or (is_terminal and text.startswith('Speed: ')) or (is_live and SAVED.match(text)):
            return False
        if found := PROGRESS.match(text):
            return (found[1] == 'test' or not is_live) and self._is_progress_needed(text, found)
        if text.startswith('Saving checkpoint at '):
            before, self._saved = self._saved, self.runner.epoch
            return before != self._saved
        return True

    def _is_progress_needed(self, text: str, found: re.Match) -> bool:
        loggers = (hook for hook in self.runner.hooks if isinstance(hook, LoggerHook))
        interval = next((hook.interval for hook in loggers if hook.ignore_last), 1)  # 1: there is a line at the end
        is_last = int(found[2]) + interval > int(found[3]) if found[1] == 'train' else 'eta: ' not in text
        is_due = time.monotonic() - self._printed >= EVERY
        if is_last or is_due:
            self._printed = time.monotonic()
        return is_last or is_due


@HOOKS.register_module()
class ConsoleHook(Hook):
    """On a terminal: a live line of the training, and a line for each finished epoch or validation.

    The hook changes nothing of the run. It looks at the clock in each iteration, and draws twice a second.
    """

    priority = 'LOWEST'  # after the checkpoint hook, which notes the best score
    _handler: Any = None  # that of the terminal
    _finished: str | None = None

    def before_train(self, runner: Runner) -> None:
        shown = [each for each in runner.logger.handlers if each.level <= logging.INFO >= runner.logger.level]
        self._handler = next((each for each in shown if isinstance(each, TerminalHandler)), None)
        if self._handler:
            self._handler.is_live = True
        self._is_by_iteration = isinstance(runner.train_loop, IterBasedTrainLoop)
        self._begin(runner)

    def before_train_epoch(self, runner: Runner) -> None:
        self._print_finished()
        self._begin(runner)

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        if not self._is_due():
            return
        self._steps.append((self._drawn, runner.iter + 1))
        width = self._handler.console.width - 1
        bar = '━─' if self._handler.console.encoding.startswith('utf') else '#-'
        self._handler.show(fit(self._describe(runner, batch_idx + 1, bar), width))

    def after_train_epoch(self, runner: Runner) -> None:
        if self._handler and not self._is_by_iteration:
            self._finished = self._describe_finished(runner, f'epoch {runner.epoch + 1}/{runner.max_epochs}')

    def after_val_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        if self._is_due():
            self._handler.show(f'validation {batch_idx + 1}/{len(runner.val_dataloader)}')

    def after_val_epoch(self, runner: Runner, metrics: Mapping[str, Any] | None = None) -> None:
        if self._handler is None:
            return
        if self._is_by_iteration:
            self._finished = self._describe_finished(runner, f'iteration {runner.iter:,}/{runner.max_iters:,}')
        line = self._finished or f'validation after iteration {runner.iter:,}'  # one that a resumed run makes up for
        numbers = [(name, value) for name, value in (metrics or {}).items() if isinstance(value, (int, float))]
        line += ''.join(f', {name} {value:.4g}' for name, value in numbers)
        best = best_of(runner)
        self._finished = line + ('  best' if best and best != self._best else '')
        self._print_finished()
        self._begin(runner)

    def after_train(self, runner: Runner) -> None:
        self._print_finished()
        clear(runner.logger)

    def _is_due(self) -> bool:
        now = time.monotonic()
        if self._handler is None or now - self._drawn < REDRAW:
            return False
        self._drawn = now
        return True

    def _begin(self, runner: Runner) -> None:
        """Begin an epoch, or the iterations after a validation."""
        self._started, self._first, self._drawn = time.monotonic(), runner.iter, -math.inf
        self._steps: deque[tuple[float, int]] = deque([(self._started, runner.iter)], maxlen=20)
        self._best = best_of(runner)

    def _print_finished(self) -> None:
        if self._handler and self._finished:
            self._handler.print(self._finished)
        self._finished = None

    def _describe(self, runner: Runner, done: int, bar: str) -> list[tuple[int, str]]:
        """Return the fields of the live line, with their ranks: those of high rank are left out first."""
        (begin, first), (end, last) = self._steps[0], self._steps[-1]
        each = (end - begin) / max(last - first, 1)
        total, hub = len(runner.train_dataloader), runner.message_hub
        left = [duration(each * (runner.max_iters - runner.iter - 1))]
        if self._is_by_iteration:
            done, total = runner.iter + 1, runner.max_iters
            fields = [(0, 'iteration')]
        else:
            fields = [(0, f'epoch {runner.epoch + 1}/{runner.max_epochs}')]
            left = [duration(each * (total - done)), *left]
        full = BAR * done // total
        fields += [(4, bar[0] * full + bar[1] * (BAR - full)), (1, f'{done}/{total}')]
        fields += [(2, f'loss {loss_of(runner, 10):.4g}')]
        if rate := hub.log_scalars.get('train/lr'):
            fields += [(5, f'lr {rate.current():.2g}')]
        images = (runner.train_dataloader.batch_size or 1) * runner.world_size / max(each, 1e-9)
        fields += [(6, f'{images:.3g} images/s' if images < 1000 else f'{images:,.0f} images/s')]
        fields += [(3, ' of '.join(left) + ' left')]
        if torch.cuda.is_available():
            fields += [(8, f'{torch.cuda.max_memory_allocated() / 2**30:.1f} GB')]
        if self._best:
            fields += [(7, f'best {self._best[1]:.4g}')]
        return fields

    def _describe_finished(self, runner: Runner, name: str) -> str:
        loss = loss_of(runner, max(runner.iter - self._first, 1))
        return f'{name}: loss {loss:.4g}, {duration(time.monotonic() - self._started)}'


def fit(fields: Sequence[tuple[int, str]], width: int) -> str:
    """Join the fields of a line, without those of the highest ranks if it would be too long."""
    kept = [*fields]
    while len(kept) > 1 and len('  '.join(text for _, text in kept)) > width:
        kept.remove(max(kept))
    return '  '.join(text for _, text in kept)


def loss_of(runner: Runner, number: int) -> float:
    """Return the mean loss of the last iterations; NaN if it is not logged."""
    losses = runner.message_hub.log_scalars.get('train/loss')
    return float(losses.mean(number)) if losses else math.nan


def best_of(runner: Runner) -> tuple[str, float] | None:
    """Return name and value of the best score so far; None without ``save_best``, or before a score."""
    savers = [hook for hook in runner.hooks if isinstance(hook, CheckpointHook) and hook.save_best]
    if not savers:
        return None
    name, *others = savers[0].key_indicators
    best = runner.message_hub.runtime_info.get(f'best_score_{name}' if others else 'best_score')
    return None if best is None else (name, float(best))


def duration(seconds: float) -> str:
    """Return a time such as ``1:02:03``, ``2:03`` or, for less than a minute, ``0:12``."""
    if not math.isfinite(seconds):
        return '?'
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f'{hours}:{minutes:02}:{rest:02}' if hours else f'{minutes}:{rest:02}'


def clear(logger: logging.Logger) -> None:
    """Remove the live line, at the end of a training or before an error."""
    for handler in logger.handlers:
        if isinstance(handler, TerminalHandler) and handler.is_live:
            handler.show('')
            handler.is_live = False
