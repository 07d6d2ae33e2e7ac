"""The folder of a training: one training at a time, the checkpoint that it starts from, nothing of another run lost."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from filelock import FileLock, Timeout
from mmengine.config import Config
from mmengine.dist import broadcast_object_list, is_main_process

from vt.checkpoints.reading import Checkpoint, find_newest_checkpoint, own_checkpoints
from vt.engine.config.steps import require_file
from vt.engine.run.processes import any_process, number_in
from vt.errors import FileError, UserError
from vt.files import fcntl
from vt.untrusted_text import printable

LOCK, RECORD = 'run.lock', 'training.json'
# Set when torchrun or SLURM restarts a run with the same command line.
RESTARTS = ('TORCHELASTIC_RESTART_COUNT', 'SLURM_RESTART_COUNT')


@dataclass(frozen=True)
class Start:
    """Where a training starts.

    Attributes:
        checkpoint: path or address of the checkpoint that it continues; None for the beginning.
        notes: lines for the log.
        held: the content of the checkpoint, if it was read already.
    """

    checkpoint: str | None
    notes: tuple[str, ...] = ()
    held: Checkpoint | None = None


def start_of(cfg: Config) -> str | None:
    """Return what a config asks to resume from, as ``--resume`` does: see :func:`use_work_directory`."""
    return (cfg.get('load_from') or 'auto') if cfg.get('resume') else None


@contextmanager
def use_work_directory(work_dir: str, start: str | None) -> Iterator[Start]:
    """Use a work directory for one training, and choose the checkpoint that it resumes from.

    Enter it in all processes. A training continues the newest checkpoint of its folder, or needs a folder without
    files of an earlier run. One that torchrun or SLURM restarts continues from its own newest checkpoint.

    Args:
        work_dir: the folder.
        start: value of ``--resume``: a path, a folder or ``'auto'`` (the work directory) for its newest complete
            checkpoint, a URL, or None.

    Yields:
        Where the training starts.

    Raises:
        UserError: another training uses the folder, it has files of an earlier run, or all checkpoints are damaged.
    """
    was_restarted = any_process(any(number_in(name) > 0 for name in RESTARTS))
    with lock_folder(Path(work_dir)) if is_main_process() else nullcontext() as lock:
        # The main process chooses, since a file system may look different to other processes.
        choice, held = [None], None
        if lock is not None:
            job = f'job {os.environ.get("SLURM_JOB_ID") or os.environ.get("TORCHELASTIC_RUN_ID") or "of this machine"}'
            lock.seek(0)
            # Only a run that has begun and has not ended leaves a line; launchers use the name of a job again.
            has_begun = was_restarted and lock.read().endswith(f', {job}\n')
            if not has_begun:
                lock.truncate(0)
            found = select_resume_checkpoint(Path(work_dir), start, has_begun)  # takes time, and may be killed
            choice, held = [replace(found, held=None)], found.held
            lock.truncate(0)
            date = time.strftime('%Y-%m-%d %H:%M:%S')
            lock.write(f'process {os.getpid()} on {socket.gethostname()} since {date}, {job}\n')
            lock.flush()
        broadcast_object_list(choice)
        yield replace(choice[0], held=held)
        if lock is not None:
            lock.truncate(0)


@contextmanager
def lock_folder(folder: Path) -> Iterator[TextIO]:
    """Lock a work directory for this process within the block, and provide the file that tells others about the run.

    It is a record lock: the system releases it however the process ends, it works over NFS, and forked processes do not
    inherit it. Opening and closing the file again in this process would release it. On Windows, which has none and
    where others could not read a locked file, another file is locked.

    Raises:
        UserError: another process has locked the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / LOCK).exists() and not (folder / LOCK).is_file():
        raise FileError(f'{folder / LOCK} is not a regular file: remove it, or choose another --work-dir')
    with (folder / LOCK).open('a+', encoding='utf-8') as file, ExitStack() as locks:
        try:
            if fcntl:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            else:
                locks.enter_context(FileLock(folder / f'{LOCK}.windows', blocking=False))
        except (BlockingIOError, PermissionError, Timeout) as error:
            file.seek(0)
            raise UserError(
                f'{folder} is in use by another training ({file.read(200).strip() or "just started"}): wait until it '
                'ends, stop it, or choose another --work-dir'
            ) from error
        except OSError as error:
            print(f'warning: {folder} cannot be locked ({error}): do not start another training in it', file=sys.stderr)
        yield file


def select_resume_checkpoint(folder: Path, start: str | None, is_own: bool) -> Start:
    """Choose the checkpoint that a training in a folder resumes from, see :func:`use_work_directory`.

    Args:
        folder: the work directory.
        start: value of ``--resume``, or None.
        is_own: whether this run, before it was restarted, has written what is in the folder.

    The notes are about checkpoints not used.
    """
    newest, damaged = find_newest_checkpoint(folder)
    start = 'auto' if is_own and (newest or damaged) else start
    others = find_newest_checkpoint(start) if start not in (None, 'auto') and Path(start).is_dir() else None
    files = [path.name for *_, path in own_checkpoints(folder)]
    checkpoint, notes = start, []
    if start not in (None, 'auto') and others is None:
        require_file(start, 'checkpoint to resume from')
    if start == 'auto' or others is not None:
        found, passed_over = (newest, damaged) if others is None else others
        lines = [printable(line) for _, line in passed_over]
        if lines and found is None:
            words = f'{folder if others is None else start} has no complete checkpoint'
            raise UserError(f'{lines[0]}; {words}: choose another --work-dir to start again')
        checkpoint = found and found.name
        notes = [f'{line}. Resuming from {checkpoint} instead' for line in lines]
        if found is None and others is not None:
            raise UserError(f'--resume {start}: the folder has no checkpoint')
        if found is None:
            notes = [f'There is nothing to resume in {folder}: training starts from the beginning']
    files += [RECORD] if os.path.lexists(folder / RECORD) else []
    latest = Path(newest.name) if newest else None
    continues = checkpoint is not None and latest is not None and Path(checkpoint).resolve() == latest.resolve()
    if files and not (is_own or continues):
        why = [f'{printable(line)};' for path, line in damaged if path.resolve() == Path(start or '').resolve()]
        why += [f'{folder} contains files of an earlier run ({files[-1]}):']
        how = f'--resume continues from {latest.name}' if latest else 'it has no checkpoint to resume from'
        raise UserError(f'{why[0]} {how}; or choose another --work-dir')
    held = next((each for each in (newest, others and others[0]) if each and each.name == checkpoint), None)
    return Start(checkpoint, tuple(notes), held)
