"""Whether data are the same as before: digests of samples, of what is in memory and of the files that they name."""

import os
import stat
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

from .rows import PREFIX, RowsBackend


def digest_values(*values: Any) -> str:
    """Return a digest of plain values; arrays count by content, paths of files also by their size and time."""
    digest = blake2b(digest_size=16)
    for part in _parts(values):
        digest.update(b'%d:' % len(part) + part)
    return digest.hexdigest()


def digest_samples(dataset: Any) -> str | None:
    """Return a digest of the samples of a data set, of their labels and files, without reading the files.

    None if it isn't known what the samples are: the data set doesn't list them, or files are in a remote store.
    """
    if not hasattr(dataset, 'get_data_info'):
        return None
    samples, tables = blake2b(digest_size=16), {}
    for index in range(len(dataset)):
        info = dataset.get_data_info(index)
        samples.update(digest_values(info).encode())
        for path in (value for value in info.values() if isinstance(value, str) and '://' in value):
            if not path.startswith(f'{PREFIX}://'):
                return None
            address = path.rpartition('/')[0]
            tables.setdefault(address, RowsBackend.columns[address])
    return digest_values(samples.hexdigest(), {address: rows.identity() for address, rows in tables.items()})


def _parts(value: Any) -> Iterator[bytes]:
    match value:
        case str():
            yield value.encode(errors='surrogateescape')
            yield _state_of(value)
        case np.ndarray():
            yield f'{value.shape}{value.dtype}'.encode()
            yield np.ascontiguousarray(value).tobytes()
        case dict():
            for key in sorted(value, key=str):
                yield str(key).encode()
                yield from _parts(value[key])
        case list() | tuple():
            yield b'%d' % len(value)
            for each in value:
                yield from _parts(each)
        case _:
            yield repr(value).encode()


def _state_of(path: str) -> bytes:
    """Return size and time of a file; nothing for other text."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return b''
    return b'%d %d' % (found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else b''
