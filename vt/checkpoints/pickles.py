"""Read files of ``torch.save`` without PyTorch's reader, whose list of allowed names is one for the whole process.

A pickle names functions and classes to call. Here none of them is imported or called: a name that
:mod:`vt.checkpoints.inert` knows is a placeholder that stores its arguments, and any other name is refused. Tensors and
numbers are made of the placeholders afterwards.
"""

import io
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from vt.errors import DamagedError, UserError
from vt.private_names import Unpickler

from .inert import OpaqueObject, dtype_of, placeholder

ARCHIVE, PICKLE = b'PK\x03\x04', b'\x80'  # first bytes of files of torch.save, now and before PyTorch 1.6
MAGIC = 0x1950A86A20F9469CFC6C  # first number in files before PyTorch 1.6
# Names of Python 2, as pickle writes them at the protocol of torch.save.
MODULES = {'__builtin__': 'builtins', 'copy_reg': 'copyreg'}
Storages = Callable[[str, int, torch.dtype], Tensor]


class RefusedError(UserError):
    """A pickle contains a class or function that weights do not need."""


class _Reader(Unpickler):
    """Reads a pickle with placeholders for names and storages.

    Args:
        file: the pickle; what follows it is not read.
        find_storage: returns the numbers of a storage for its key, their number and dtype.
    """

    def __init__(self, file: IO[bytes], find_storage: Storages | None = None) -> None:
        super().__init__(file, encoding='utf-8')
        self.find_storage = find_storage

    def find_class(self, module: str, name: str) -> type[OpaqueObject]:
        full = f'{MODULES.get(module, module)}.{name}'
        if (found := placeholder(full)) is None:
            raise RefusedError(full)
        return found

    def persistent_load(self, pid: Any) -> OpaqueObject:
        match pid:
            case 'storage', type() as kind, str(key), _, int(number), *view if self.find_storage:
                numbers = self.find_storage(key, number, dtype_of(kind))
                if len(numbers) < number:
                    raise DamagedError(f'its storage {key} has {len(numbers):,} numbers instead of {number:,}')
                for _, first, length in filter(None, view):  # a part of another storage
                    numbers = numbers[first : first + length]
                return OpaqueObject(numbers)
        raise DamagedError('it has a persistent ID that is not a storage')


def read_pickle(path: Path, device: torch.device) -> Any:
    """Return the content of a file of ``torch.save`` with placeholders, its weights on a device.

    On the device ``'meta'`` the file is read and its checksums are compared, but the weights are not kept.

    Raises:
        RefusedError: it contains a class or function that weights do not need; the message is its name.
        DamagedError: it is truncated, changed, or declares more than it has.
        Exception: of any type, for other damage.
    """
    size = path.stat().st_size
    with path.open('rb') as file:
        begin = file.read(len(ARCHIVE))
        file.seek(0)
        if begin == ARCHIVE:
            return _read_archive(file, size, device)
        if not begin.startswith(PICKLE):
            raise DamagedError('it does not begin like a checkpoint of torch.save')
        return _read_before_archives(file, size, device)


def _read_archive(file: IO[bytes], size: int, device: torch.device) -> Any:
    stored = {}
    try:
        with zipfile.ZipFile(file) as archive:
            if (expanded := sum(part.file_size for part in archive.infolist())) > size:
                raise DamagedError(f'its {size:,} bytes decompress to {expanded:,}')
            parts = {part.filename.partition('/')[2]: part for part in archive.infolist()}
            pickled = archive.read(parts.pop('data.pkl'))
            if 'byteorder' in parts and archive.read(parts['byteorder']) != sys.byteorder.encode():
                raise DamagedError(f'its byte order is not that of this machine, {sys.byteorder}-endian')
            for name, part in parts.items():  # all of them, so that all checksums are compared
                with archive.open(part) as content:
                    stored[name] = _read_bytes(content, part.file_size, device)
    except (zipfile.BadZipFile, KeyError) as error:
        raise DamagedError(f'it is truncated or changed ({error})') from error

    def find_storage(key: str, number: int, dtype: torch.dtype) -> Tensor:
        return stored[f'data/{key}'].view(dtype)

    return _Reader(io.BytesIO(pickled), find_storage).load()


def _read_before_archives(file: IO[bytes], size: int, device: torch.device) -> Any:
    """Read the format before PyTorch 1.6: pickles, then the storages, each after the number of its numbers."""
    stored: dict[str, Tensor] = {}

    def find_storage(key: str, number: int, dtype: torch.dtype) -> Tensor:
        if number > size:
            raise DamagedError(f'it has {size:,} bytes, too few for a storage of {number:,} numbers')
        return stored.setdefault(key, torch.zeros(number, dtype=dtype, device=device))

    magic, _, _ = (_Reader(file).load() for _ in range(3))  # also a version, and the sizes of C's types
    if magic != MAGIC:
        raise DamagedError('it does not begin with the number of a checkpoint of torch.save')
    content = _Reader(file, find_storage).load()
    for key in _Reader(file).load():
        if struct.unpack('<q', file.read(8)) != (len(stored[key]),):
            raise DamagedError(f'its storage {key} has another length')
        numbers = stored[key].view(torch.uint8)
        numbers.copy_(_read_bytes(file, len(numbers), device))
    return content


def _read_bytes(file: IO[bytes], length: int, device: torch.device) -> Tensor:
    """Return the next bytes of a file, ``(length,)``."""
    content = torch.empty(length, dtype=torch.uint8, device='cpu')
    if file.readinto(content.numpy().data) != length:
        raise DamagedError('it is truncated')
    return content.to(device)
