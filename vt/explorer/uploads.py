"""The folder of a page's uploads: gone when the page ends, however it ends."""

import fcntl
import os
import shutil
import signal
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = 'vt_explorer_'
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def upload_folder() -> Iterator[Path]:
    """A folder of this process alone, with what earlier ones that were killed left taken away before.

    A page holds a lock on its folder, which the system releases when its process ends in whatever way.
    """
    for left in Path(tempfile.gettempdir()).glob(f'{PREFIX}*'):
        with suppress(OSError):  # another user's, no folder, or another process was faster
            lock = _lock(left)
            shutil.rmtree(left, ignore_errors=True)  # it follows no links
            os.close(lock)
    folder, lock = _make()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _make() -> tuple[Path, int]:
    while True:  # until no page that begins at this moment takes it for one that is left
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        with suppress(BlockingIOError, FileNotFoundError):
            lock = _lock(folder)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _lock(folder: Path) -> int:
    """The descriptor of an own folder, no link, with a lock on it; an ``OSError`` where another process has that."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(f'{folder} is not of this user alone')
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def ending_in_order() -> Iterator[None]:
    """While it lasts a signal that ends the process has it leave every ``with`` block before; a second one is ignored.

    Ctrl-C is how a person ends the page, with exit code 0; other signals end it with 128 and their number, as shells
    tell it. What is ignored, as by ``nohup``, stays so.
    """

    def end(number: int, frame: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(0 if number == signal.SIGINT else 128 + number)

    before = {each: signal.getsignal(each) for each in ENDS if signal.getsignal(each) is not signal.SIG_IGN}
    for each in before:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
