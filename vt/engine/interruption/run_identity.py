"""Which run a work directory is of: one at a time, and the checkpoints of one alone."""

import fcntl
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TextIO

from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner

from vt.checkpoints.files import POINTER, write_atomically
from vt.checkpoints.newest import read_run, run_in
from vt.engine.runner import VTRunner
from vt.errors import UserError

LAST_RUN, LOCK = 'last_run', 'run.lock'
FILES_OF_A_RUN = ('*.pth', POINTER, 'training.json')


class Run(Hook):
    """A training that has its work directory to itself: a context, and a hook of its runner.

    Its id is kept in ``last_run`` of the folder, in its checkpoints and in ``training.json``. What an earlier run left
    stays in its place until the first checkpoint of this one is written. Then it moves to ``earlier_run_<date>`` below
    the folder. An error before the first iteration leaves the earlier run the newest one.

    Raises:
        UserError: on entering the context, another training has the folder.
    """

    priority = 'VERY_HIGH'  # files of another run have gone before CheckpointHook looks for its own

    def __init__(self, work_dir: str) -> None:
        self.work_dir = Path(work_dir)
        self.id: str | None = None  # of runs of earlier versions there is none
        self._is_new = self._has_begun = False

    def __enter__(self) -> 'Run':
        if is_main_process():
            self._lock = lock_folder(self.work_dir)
            self._before = read_last_run(self.work_dir)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if not is_main_process():
            return
        starts_again = int(os.environ.get('TORCHELASTIC_MAX_RESTARTS') or 0) > 0
        if isinstance(error, Exception) and not (self._has_begun or starts_again):
            self._write(self._before)
        self._lock.close()

    def enter(self, run: str | None, is_new: bool) -> None:
        """Take the id of a run; from here on it is the newest one of the folder. All processes call this."""
        self.id, self._is_new = run, is_new
        if is_main_process():
            self._write(run)

    def before_train(self, runner: Runner) -> None:
        found = None if self._is_new else run_in(runner.message_hub.runtime_info)
        self.id = found or self.id
        if self.id is not None:
            runner.message_hub.update_info('run', self.id)
        self._has_begun = True
        if is_main_process():
            self._write(self.id)
            if not self._is_new and self.id != self._before:
                self._set_aside(runner, self.work_dir, unless=lambda path: read_run(path) == self.id)

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        if is_main_process() and not isinstance(runner, VTRunner):  # which waits until the new file is whole
            self.before_file(runner, self.work_dir)

    def before_file(self, runner: Runner, folder: Path) -> None:
        """The main process is about to give a checkpoint or a record its name in a folder."""
        if self._is_new:
            self._is_new = False
            for place in (self.work_dir, folder):  # often the same
                self._set_aside(runner, place, unless=lambda path: False)

    def _set_aside(self, runner: Runner, folder: Path, unless: Callable[[Path], bool]) -> None:
        found = [path for pattern in FILES_OF_A_RUN for path in folder.glob(pattern)]
        # The newest one names the folder and goes last, so that after a kill in between the others find it.
        paths = sorted(
            (path for path in found if path.suffix != '.pth' or not unless(path)), key=lambda path: path.stat().st_mtime
        )
        if not any(path.suffix == '.pth' for path in paths):
            return
        name = f'earlier_run_{time.strftime("%Y%m%d_%H%M%S", time.localtime(paths[-1].stat().st_mtime))}'
        target = folder / name
        while any((target / path.name).exists() for path in paths):
            target = target.with_name(f'{target.name}_')
        target.mkdir(exist_ok=True)
        for path in paths:
            path.rename(target / path.name)
        runner.logger.warning(f'{folder} held files of an earlier run: they are now in {target}')

    def _write(self, run: str | None) -> None:
        if run is None:
            (self.work_dir / LAST_RUN).unlink(missing_ok=True)
        elif run != read_last_run(self.work_dir):
            write_atomically(self.work_dir / LAST_RUN, run)


def new_run() -> str:
    """An id: when it was made, and eight digits by chance."""
    return f'{time.strftime("%Y%m%d-%H%M%S")}-{secrets.token_hex(4)}'


def read_last_run(folder: str | Path) -> str | None:
    """The id of the newest run of a work directory; None where there is none, or one of an earlier version."""
    path = Path(folder, LAST_RUN)
    return (path.read_text(errors='replace').strip() if path.is_file() else '') or None


def lock_folder(folder: Path) -> TextIO:
    """Lock a work directory for this process, until the file that is returned is closed or the process ends.

    A record lock: the system frees it however the process ends, it holds for all machines that share the folder over
    NFS, and processes that are forked do not inherit it. It would go if this process closed the file a second time.

    Raises:
        UserError: another process has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / LOCK).open('a+')
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        file.seek(0)
        raise UserError(
            f'{folder} is in use by another training ({file.read(200).strip() or "it has just begun"}): wait until it '
            'ends, stop it, or give another --work-dir'
        ) from error
    except OSError as error:
        print(f'warning: {folder} cannot be locked ({error}): start no other training in it', file=sys.stderr)
    file.truncate(0)
    file.write(f'process {os.getpid()} on {socket.gethostname()} since {time.strftime("%Y-%m-%d %H:%M:%S")}\n')
    file.flush()
    return file
