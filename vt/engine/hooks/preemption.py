"""Save a checkpoint and exit when a signal ends the run, for example on preemption."""

import atexit
import multiprocessing
import os
import shlex
import signal
import sys
import threading
from types import FrameType
from typing import Any

from mmengine.hooks import Hook
from mmengine.runner import Runner

from vt.engine.run.processes import largest
from vt.hints import typed_start
from vt.registry import HOOKS

from .checkpoint import CheckpointHook, is_accumulating

SIGNALS = tuple(name for name in ('SIGINT', 'SIGTERM', 'SIGUSR1') if hasattr(signal, name))  # Windows has not all


@HOOKS.register_module()
class PreemptionHook(Hook):
    """On a signal, save after the current iteration and exit with code 128 + the number of the signal.

    torchrun and SLURM send SIGTERM; SLURM can send another signal in advance, ``#SBATCH --signal=USR1@120``. A signal
    to one process stops all processes at the same iteration. A validation is finished first, and with several processes
    an accumulation of gradients, too. Ctrl-C is SIGINT; a second one ends the process at once. Ignored signals stay so.

    Args:
        signals: names of the signals.
    """

    priority = 'LOWEST'

    def __init__(self, signals: tuple[str, ...] = SIGNALS) -> None:
        self.signals = [signal.Signals[name] for name in signals]
        self._received = 0
        self._previous_handlers: dict[signal.Signals, Any] = {}

    def before_train(self, runner: Runner) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # only the main thread can handle signals
        atexit.register(end_workers)
        self._process, self._is_main = os.getpid(), runner.rank == 0
        # Workers inherit the handler; without it, a signal to all processes of a job would end them before the save.
        heard = [number for number in self.signals if signal.getsignal(number) is not signal.SIG_IGN]
        self._previous_handlers = {number: signal.signal(number, self._note) for number in heard}

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        number = largest(self._received, runner)
        # Averaging gradients over processes during accumulation would change the rounding of the weights.
        if number and (runner.world_size == 1 or not is_accumulating(runner)):
            self._leave(runner, number)

    def after_train(self, runner: Runner) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and os.getpid() == self._process:  # not in a worker
            if self._received:
                end_workers()
                os._exit(128 + number)
            if self._is_main:  # not by print or the log, which the signal may have interrupted
                os.write(2, b'\nCtrl-C: saving after this iteration, or validation; once more ends without saving\n')
        self._received = number

    def _leave(self, runner: Runner, number: int) -> None:
        name = signal.Signals(number).name
        saver = next((hook for hook in runner.hooks if isinstance(hook, CheckpointHook)), None)
        saved = saver.save_interrupted(runner) or 'nothing' if saver else 'nothing, because there is no checkpoint hook'
        largest(0, runner)  # wait: the launcher ends all processes when one exits, and the main one may be writing
        words = f'Stopped by {name} after iteration {runner.iter + 1}; saved {saved}. Continue with {_command(runner)}'
        runner.logger.warning(words)
        sys.exit(128 + number)


def _command(runner: Runner) -> str:
    """Return the command that continues a run of ``tools/train.py`` in one process, else a description of it."""
    if not getattr(runner, 'is_repeatable', False) or runner.world_size > 1:
        return 'the same command and --resume (in Python: resume=True)'
    arguments = [*sys.argv[1:], *([] if sys.argv[-1] == '--resume' else ['--resume'])]
    return f'{typed_start()} {shlex.join(arguments)}'


def end_workers() -> None:
    """Kill all workers; one that has just started still has the run's signal handler, and Python would wait for it."""
    if hasattr(signal, 'SIGCHLD'):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # PyTorch's handler would raise an error
    for worker in multiprocessing.active_children():
        worker.kill()
