"""The folder of the page's uploads, which is removed when the page ends."""

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
    """Create a private folder for a ``with`` block, and remove the folders of earlier processes that were killed.

    A page holds a lock on its folder, which the system releases when the process ends, also when it is killed.
    """
    for left in Path(tempfile.gettempdir()).glob(f'{PREFIX}*'):
        with suppress(OSError):  # of another user, not a folder, or in use by another process
            lock = _lock(left)
            shutil.rmtree(left, ignore_errors=True)  # does not follow links
            os.close(lock)
    folder, lock = _make()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _make() -> tuple[Path, int]:
    while True:  # a page that starts at the same time may remove the folder before it is locked
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        with suppress(BlockingIOError, FileNotFoundError):
            lock = _lock(folder)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _lock(folder: Path) -> int:
    """Lock a folder of this user and return its descriptor; raise ``OSError`` if another process has the lock."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(f'{folder} is not private to this user')
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Make signals that end the process leave all ``with`` blocks first; further signals are ignored.

    The exit code is 0 for Ctrl-C, the usual way to end the page, and 128 plus the number for other signals, as in
    shells. Signals that are already ignored, such as by ``nohup``, stay ignored.
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
