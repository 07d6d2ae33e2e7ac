"""One training at a time in a work directory; a new one sets the files of an earlier one aside."""

import fcntl
import os
import socket
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TextIO

from mmengine.dist import barrier, is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner

from vt.checkpoints.reading import own_checkpoints, read_position
from vt.engine.processes.process_variables import number_in
from vt.errors import UserError
from vt.files import POINTER, open_plain, write_atomically

WRITTEN = '# Config of a run\n'  # first line of the configs that runs write
LOCK, RECORD = 'run.lock', 'training.json'
PLAN = 'to_set_aside'  # names of the files that a run sets aside when it begins, one a line


class WorkDirectory(Hook):
    """Exclusive use of a work directory by a training: a context manager, and a hook of the runner.

    Files of an earlier run, and of later iterations than the one that a run resumes from, move to the subfolder
    ``earlier_run_<date>`` after the rehearsal, before the first iteration. A run that fails or is stopped by Ctrl-C
    before leaves the folder as it was; if it is killed, the next one moves them first, so that no run mixes with
    another one.

    Args:
        work_dir: the folder.

    Raises:
        UserError: on entering the context, if another training uses the folder.
    """

    priority = 95  # after the rehearsal, before ResumeHook validates

    def __init__(self, work_dir: str) -> None:
        self.path = Path(work_dir)
        self._plan = self.path / PLAN
        self._moved = ''
        self._has_begun = False

    def __enter__(self) -> 'WorkDirectory':
        if is_main_process():
            self._lock = lock_folder(self.path)
            self._set_aside()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if not is_main_process():
            return
        starts_again = number_in('TORCHELASTIC_MAX_RESTARTS') > 0
        if error is not None and not (self._has_begun or starts_again):  # also Ctrl-C
            self._plan.unlink(missing_ok=True)
        self._lock.close()

    def begin_from(self, checkpoint: str | None) -> None:
        """Plan which files to set aside; call it unless the run continues the one in the folder.

        Args:
            checkpoint: the checkpoint that the user named to resume from; None for a run from the beginning.
        """
        is_here = checkpoint is not None and Path(checkpoint).resolve().parent == self.path.resolve()
        if is_main_process() and (names := self._names(read_position(checkpoint) if is_here else None)):
            write_atomically(self._plan, '\n'.join(names))

    def before_train(self, runner: Runner) -> None:
        barrier()  # every process has loaded the weights that the run begins with
        self._has_begun = True
        if is_main_process():
            self._set_aside()
        if self._moved:
            runner.logger.warning(self._moved)

    def _names(self, position: tuple[int, int] | str | None) -> list[str]:
        """Return the names of the files of a run: all, or those of later iterations than ``position``."""
        is_position = isinstance(position, tuple)
        done = dict(zip(('epoch', 'iter'), position if is_position else (-1, -1)))
        names = [path.name for step, unit, _, path in own_checkpoints(self.path) if step > done[unit]]
        if not names and (is_position or not (self.path / RECORD).exists()):
            return []
        configs = [path for path in self.path.glob('*.py') if path.is_file()]
        configs = [path.name for path in configs if path.read_text(errors='replace').startswith(WRITTEN)]
        return [*names, *configs, POINTER, RECORD]

    def _set_aside(self) -> None:
        """Move what a plan names; the folder has the date of the plan, so that a later run finishes it after a kill."""
        if not self._plan.is_file():
            return
        names = {Path(line).name for line in self._plan.read_text(errors='replace').split('\n')} - {'', '..'}
        paths = [path for path in (self.path / name for name in names) if os.path.lexists(path)]
        date = time.strftime('%Y%m%d_%H%M%S', time.localtime(self._plan.stat().st_mtime))
        target = self.path / f'earlier_run_{date}'
        while target.is_symlink() or any(os.path.lexists(target / path.name) for path in paths):
            target = target.with_name(f'{target.name}_')
        target.mkdir(exist_ok=True)
        for path in paths:
            path.rename(target / path.name)
        self._plan.unlink()
        self._moved = f'Files of an earlier run, or of later iterations, in {self.path} were moved to {target}'


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
