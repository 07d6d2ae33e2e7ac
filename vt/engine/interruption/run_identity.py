"""Identity of runs: one run at a time in a work directory, and checkpoints of only one run."""

import fcntl
import os
import re
import secrets
import socket
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TextIO

from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner

from vt.checkpoints.files import POINTER, open_plain, write_atomically
from vt.checkpoints.newest import State, read_state, state_in
from vt.engine.processes.process_variables import number_in
from vt.errors import UserError

WRITTEN = '# Config of a run\n'  # first line of the configs that runs write
LAST_RUN, LOCK, RECORD = 'last_run', 'run.lock', 'training.json'
NAME = re.compile(r'(?:best_.+_|interrupted_)?(epoch|iter)_(\d+)\.pth')  # of a checkpoint


class Run(Hook):
    """A training with exclusive use of its work directory: a context manager, and a hook of the runner.

    The id of the run is stored in the file ``last_run``, in checkpoints and in ``training.json``. Files of an earlier
    run, and of later iterations than the one that the user named to resume from, stay in place until the first new
    checkpoint is complete; then they move to the subfolder ``earlier_run_<date>``. After an error before the first
    iteration, the earlier run remains the newest one.

    Raises:
        UserError: on entering the context, if another training uses the folder.
    """

    priority = 'VERY_HIGH'  # see a checkpoint before other hooks change it

    def __init__(self, work_dir: str) -> None:
        self.work_dir = Path(work_dir)
        self.id: str | None = None  # None if another program wrote the resumed checkpoint
        self._begin: State | None = None  # of the resumed checkpoint
        self._has_begun = self._has_files = self._is_named = False

    def __enter__(self) -> 'Run':
        if is_main_process():
            self._lock = lock_folder(self.work_dir)
            self._before = read_last_run(self.work_dir)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if not is_main_process():
            return
        starts_again = number_in('TORCHELASTIC_MAX_RESTARTS') > 0
        if error is not None and not (self._has_begun or starts_again):  # also Ctrl-C
            self._write(self._before)
        self._lock.close()

    def enter(self, run: str | None, is_named: bool = False) -> None:
        """Set the id of the run, which becomes the newest run of the folder. Call it in all processes.

        Args:
            run: the id.
            is_named: the user named the checkpoint to resume from. Otherwise it is the newest, and later files of the
                run are what a kill left; they are written again.
        """
        self.id, self._is_named = run, is_named
        if is_main_process():
            self._write(run)

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        self._begin = state_in(checkpoint) if runner.cfg.get('resume') else None
        self.id = (self._begin and self._begin.run) or self.id

    def before_train(self, runner: Runner) -> None:
        if self.id is not None:
            runner.message_hub.update_info('run', self.id)
        self._has_begun = True
        if is_main_process():
            self._write(self.id)

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        if is_main_process() and not hasattr(runner, 'saver'):  # VTRunner calls before_file later
            self.before_file(runner, self.work_dir)

    def before_file(self, runner: Runner, folder: Path) -> None:
        """Set aside what the run does not continue; the main process calls it before it renames a complete file."""
        if not self._has_files:
            self._has_files = True
            for place in (self.work_dir, folder):  # often the same
                self._set_aside(runner, place)

    def _set_aside(self, runner: Runner, folder: Path) -> None:
        paths = [path for path in folder.glob('*.pth') if self._is_other(path)]
        if not paths and (self._begin or not (folder / RECORD).exists()):
            return
        paths += [path for path in (folder / POINTER, folder / RECORD) if os.path.lexists(path)]
        configs = [path for path in folder.glob('*.py') if path.is_file()]
        paths += [path for path in configs if path.read_text(errors='replace').startswith(WRITTEN)]
        # The newest file gives the folder its name and moves last, so that a later run can finish the move after a
        # kill.
        paths.sort(key=lambda path: path.lstat().st_mtime)
        name = f'earlier_run_{time.strftime("%Y%m%d_%H%M%S", time.localtime(paths[-1].lstat().st_mtime))}'
        target = folder / name
        while target.is_symlink() or any(os.path.lexists(target / path.name) for path in paths):
            target = target.with_name(f'{target.name}_')
        target.mkdir(exist_ok=True)
        for path in paths:
            path.rename(target / path.name)
        runner.logger.warning(f'Files of an earlier run, or of later iterations, in {folder} were moved to {target}')

    def _is_other(self, path: Path) -> bool:
        """Whether a checkpoint is of another run, or of a later iteration than the one that this run resumes from."""
        state, begin, name = read_state(path), self._begin, NAME.fullmatch(path.name)
        if isinstance(state, State) and (state.run or name):
            is_later = begin is not None and state.position > begin.position
            return begin is None or state.run != begin.run or (self._is_named and is_later)
        if name is None:
            return False
        return begin is None or (self._is_named and int(name[2]) > begin.position[name[1] == 'iter'])  # damaged

    def _write(self, run: str | None) -> None:
        if run is None:
            (self.work_dir / LAST_RUN).unlink(missing_ok=True)
        elif run != read_last_run(self.work_dir):
            write_atomically(self.work_dir / LAST_RUN, run)


def new_run() -> str:
    """Return a new id of a run: date, time and eight random hexadecimal digits."""
    return f'{time.strftime("%Y%m%d-%H%M%S")}-{secrets.token_hex(4)}'


def read_last_run(folder: str | Path) -> str | None:
    """Return the id of the newest run of a work directory; None without one."""
    path = Path(folder, LAST_RUN)
    return (path.read_text(errors='replace').strip() if path.is_file() else '') or None


def lock_folder(folder: Path) -> TextIO:
    """Lock a work directory for this process, until the returned file is closed or the process ends.

    It is a record lock: the system releases it however the process ends, it works over NFS, and forked processes do not
    inherit it. Opening and closing the file again in this process would release it.

    Raises:
        UserError: another process has locked the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = open_plain(folder / LOCK, 'a+')
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        file.seek(0)
        raise UserError(
            f'{folder} is in use by another training ({file.read(200).strip() or "just started"}): wait until it '
            'ends, stop it, or choose another --work-dir'
        ) from error
    except OSError as error:
        print(f'warning: {folder} cannot be locked ({error}): do not start another training in it', file=sys.stderr)
    file.truncate(0)
    file.write(f'process {os.getpid()} on {socket.gethostname()} since {time.strftime("%Y-%m-%d %H:%M:%S")}\n')
    file.flush()
    return file
