"""Reading a file that may hold anything, so that no code of it runs."""

import contextlib
import functools
import os
import pickle
import textwrap
import warnings
import zipfile
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch

from vt.errors import FileError, MissingFileError, UserError

from .foreign import ALLOWED, Conversion, ForeignError
from .plain import restore_histories
from .published import SUFFIX, read_safetensors

FLAG = '--trust-checkpoint'
ARCHIVE, PICKLE = b'PK\x03\x04', b'\x80'  # how files of torch.save begin, now and before PyTorch 1.6
is_trusted: ContextVar[bool] = ContextVar('is_trusted', default=False)  # whether checkpoints may run what they ask for


class CheckpointError(UserError):
    """A file is damaged or no checkpoint; the message is one line.

    Attributes:
        reason: why, without the file's name.
    """

    reason = ''


class RefusedError(CheckpointError):
    """A whole file asks for more than tensors, numbers and plain Python."""


def read_checkpoint(path: str | Path, map_location: Any = None, texts: bool = False, sums: bool = True) -> dict:
    """Read a checkpoint: weights-only, unless :data:`is_trusted`.

    Args:
        path: a file of ``torch.save`` or of safetensors.
        map_location: as ``torch.load`` takes it.
        texts: keep the texts of configs, which mmengine's ``resume`` and inferencers would run as Python. Without trust
            they are left out.
        sums: compare every byte of an archive with its checksum first, which PyTorch itself does not do.

    Returns:
        mmengine's checkpoint, or tensors by name.

    Raises:
        MissingFileError: it is not there.
        FileError: it can't be opened.
        CheckpointError: it is damaged, or :class:`RefusedError`.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingFileError(f'there is no checkpoint {path}: correct load_from, or the path on the command line')
    try:
        loaded = _read(path, map_location, sums)
        restore_histories(loaded)
    except OSError as error:
        raise FileError(f'{path} could not be read ({error.strerror or error})') from error
    except pickle.UnpicklingError as error:
        raise _refused(path, error) from error
    except Exception as error:  # damage leads anywhere
        raise _named(CheckpointError, path, 'is damaged or no checkpoint', _describe(error)) from error
    if not (texts or is_trusted.get()):
        _drop_configs(loaded)
    return loaded


def one_line(text: str, width: int = 300) -> str:
    """Text of a stranger in one line, without what a terminal would obey."""
    printable = ''.join(letter if letter.isprintable() else ' ' for letter in text)
    return textwrap.shorten(printable, width, placeholder=' …')


def _read(path: Path, map_location: Any, sums: bool) -> dict:
    if path.suffix == SUFFIX:
        return read_safetensors(path, map_location)
    begin = _begin(path)
    if begin == ARCHIVE and sums:
        status = path.stat()
        _require_sums(path.resolve(), status.st_size, status.st_mtime_ns)
    if is_trusted.get():
        return _require_dict(torch.load(path, map_location=map_location, weights_only=False))
    if begin != ARCHIVE and not begin.startswith(PICKLE):
        raise UserError('it begins as none' if begin else 'it is empty')
    convert = Conversion()
    with _alone(ALLOWED), warnings.catch_warnings():
        warnings.simplefilter('ignore')  # about protocols and kinds of archives
        if begin == ARCHIVE:
            _require_room(path, _archived_bytes(path))
        loaded = convert(torch.load(path, map_location=map_location, weights_only=True))
    _require_room(path, convert.num_bytes)
    return _require_dict(loaded)


def _begin(path: Path) -> bytes:
    with path.open('rb') as file:
        return file.read(len(ARCHIVE))


@functools.lru_cache(maxsize=8)
def _require_sums(path: Path, size: int, changed: int) -> None:
    """Compare an archive with its checksums, once for as long as its size and its time of change stay."""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    except zipfile.BadZipFile as error:
        raise UserError(f'it is cut off or changed ({error})') from error
    if damaged:
        raise UserError(f'its part {damaged} differs from its checksum')


@contextlib.contextmanager
def _alone(allowed: list[tuple[Any, str]]) -> Iterator[None]:
    """Let weights-only reading know these names alone; libraries may have added others to PyTorch's list."""
    before = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(allowed)
    try:
        yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)


def _archived_bytes(path: Path) -> int:
    with zipfile.ZipFile(path) as archive:
        return sum(part.file_size for part in archive.infolist())


def _require_room(path: Path, num_bytes: int) -> None:
    """Refuse what would unfold to more than the file has: compressed parts, or tensors beyond their data.

    ``torch.save`` writes neither; of such a file a few kilobytes could take all memory.
    """
    size = os.path.getsize(path)
    if num_bytes > size:
        raise UserError(f'it has {size:,} bytes and asks for {num_bytes:,} bytes of memory')


def _require_dict(loaded: Any) -> dict:
    """A checkpoint is a dict: mmengine's, or one of tensors by name."""
    if not isinstance(loaded, dict):
        raise UserError(f'it holds a {type(loaded).__name__}, where a dict of weights is needed')
    return loaded


def _refused(path: Path, error: pickle.UnpicklingError) -> CheckpointError:
    """What the weights-only reader's refusal means; without an archive's checksums it may be damage."""
    trust = f'; if you trust whoever wrote it, add {FLAG}'
    if _begin(path) != ARCHIVE:
        reason = 'it is damaged, or asks for more than weights, which may run code'
        return _named(CheckpointError, path, 'is not loaded', reason, trust)
    names: list[str] = []
    with _alone(ALLOWED), contextlib.suppress(Exception):
        names = sorted(torch.serialization.get_unsafe_globals_in_checkpoint(path))
    asked = one_line(', '.join(names)) or 'more than tensors, numbers and plain Python'
    reason = f'it asks for {asked}, which no weights need and which may run code'
    if isinstance(error, ForeignError):
        reason = one_line(str(error))
    return _named(RefusedError, path, 'is not loaded', reason, trust)


def _named(kind: type[CheckpointError], path: Path, verdict: str, reason: str, advice: str = '') -> CheckpointError:
    error = kind(f'{path} {verdict}: {reason}{advice}')
    error.reason = reason
    return error


def _describe(error: Exception) -> str:
    text = one_line(str(error), 160)
    return text if type(error) is UserError and text else f'{type(error).__name__}{text and ": "}{text}'


def _drop_configs(checkpoint: dict) -> None:
    """Take out the texts that mmengine runs: ``Runner.resume`` the first, its inferencers the others."""
    hub = checkpoint.get('message_hub')
    information = hub.get('runtime_info') if isinstance(hub, dict) else None
    for holder, name in ((checkpoint.get('meta'), 'config'), (checkpoint.get('meta'), 'cfg'), (information, 'cfg')):
        if isinstance(holder, dict):
            holder.pop(name, None)
