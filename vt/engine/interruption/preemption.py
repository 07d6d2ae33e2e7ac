"""Save and leave when the machine is about to be taken away."""

import atexit
import multiprocessing
import signal
import sys
import threading
from types import FrameType
from typing import Any

from mmengine.hooks import Hook
from mmengine.runner import Runner

from vt.engine.processes.distributed import Agreement
from vt.registry import HOOKS

from .checkpoint_hook import CheckpointHook, is_accumulating


@HOOKS.register_module()
class PreemptionHook(Hook):
    """Save after the current iteration when a signal asks the run to end, then exit with 128 + the signal's number.

    torchrun and SLURM send SIGTERM; SLURM sends another one early where asked, ``#SBATCH --signal=USR1@120``. A signal
    to one process stops all of them at the same iteration: each tells the others at every iteration, and reads at the
    next one what it was told, so that none waits. A validation is finished first; of several processes, gradients
    that are being accumulated are used first. ``signals`` names what to listen to.
    """

    priority = 'LOWEST'

    def __init__(self, signals: tuple[str, ...] = ('SIGTERM', 'SIGUSR1')) -> None:
        self.signals = [signal.Signals[name] for name in signals]
        self._received = 0
        self._previous_handlers: dict[signal.Signals, Any] = {}

    def before_train(self, runner: Runner) -> None:
        self._agreement = Agreement(runner)
        if threading.current_thread() is not threading.main_thread():
            return  # Python hands signals to the main thread alone
        atexit.register(end_workers)
        # Workers inherit the handler: a signal to all processes of a job would otherwise end them before the save.
        self._previous_handlers = {number: signal.signal(number, self._note) for number in self.signals}

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        alone = self._agreement.is_alone
        number = self._received if alone else self._agreement.read()  # of any process, an iteration ago
        self._agreement.tell(self._received)
        # The mean over processes of gradients that are still being accumulated would round the weights differently.
        if number and (alone or not is_accumulating(runner)):
            self._leave(runner, number)

    def after_train(self, runner: Runner) -> None:
        self._agreement.read()
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._received = number

    def _leave(self, runner: Runner, number: int) -> None:
        self._agreement.read()
        name = signal.Signals(number).name
        saver = next((hook for hook in runner.hooks if isinstance(hook, CheckpointHook)), None)
        saved = 'nothing, since there is no checkpoint hook' if saver is None else saver.save_interrupted(runner)
        self._agreement.wait()  # the launcher ends all when one leaves, and the main process is still writing
        words = f'Stopped by {name} after iteration {runner.iter + 1}; saved {saved}. Go on with --resume'
        runner.logger.warning(words)
        sys.exit(128 + number)


def end_workers() -> None:
    """End all workers; one that has just started takes a signal to end for the run's, and Python would wait for it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # PyTorch's handler would make an error of it
    for worker in multiprocessing.active_children():
        worker.kill()
