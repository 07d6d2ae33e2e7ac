"""Check the structure of checkpoint files before PyTorch and safetensors read them."""

import mmap
import struct
import zipfile
from pathlib import Path

from vt.errors import UserError

from .pickles import RefusedError, Scan

MAX_TABLE = 8 << 20  # bytes of an archive's directory or a safetensors header, enough for about 70,000 tensors
# End of an archive: size and position of its directory in 32 bits, preceded by those in 64 bits.
END, END_64, LOCATOR_64 = struct.Struct('<4s4H2IH'), struct.Struct('<4sQ2H2I4Q'), struct.Struct('<4sIQI')


def check_archive(path: Path, is_trusted: bool) -> None:
    """Check an archive of ``torch.save``: its checksums, and unless it is trusted its directory, parts and pickle.

    Raises:
        UserError: the file is damaged.
        RefusedError: it needs too much memory or time, or asks for more than weights need.
    """
    if not is_trusted:
        _check_directory(path)
    try:
        with zipfile.ZipFile(path) as archive:
            pickled, storages = (None, {}) if is_trusted else _check_parts(archive, path.stat().st_size)
            if damaged := archive.testzip():
                raise UserError(f'its part {damaged} differs from its checksum')
            if pickled:
                Scan(path.stat().st_size, storages)(archive.read(pickled))
    except zipfile.BadZipFile as error:
        raise UserError(f'it is truncated or changed ({error})') from error


def _check_directory(path: Path) -> None:
    """Limit the directory of an archive, and require a position that the readers of PyTorch and Python agree on."""
    begin = path.stat().st_size - END.size
    with path.open('rb') as file:
        file.seek(max(0, begin - END_64.size - LOCATOR_64.size))
        tail = file.read()
    signature, *_, length, position, comment = END.unpack(tail[-END.size :].rjust(END.size))
    if tail[-END.size - LOCATOR_64.size :].startswith(b'PK\x06\x07'):
        begin -= END_64.size + LOCATOR_64.size
        *_, length, position = END_64.unpack_from(tail)
        position = position if LOCATOR_64.unpack_from(tail, END_64.size)[2] == begin else -1
    if signature != b'PK\x05\x06' or comment or position + length != begin:
        raise UserError('it is truncated or changed (its directory is not at its end)')
    if length > MAX_TABLE:
        raise RefusedError(f'its directory has {length:,} bytes, more than the limit of {MAX_TABLE:,}')


def _check_parts(archive: zipfile.ZipFile, size: int) -> tuple[str, dict[str, int]]:
    """Check the directory of an archive; return the name of its pickle, and the bytes of each storage by name."""
    parts = archive.infolist()
    root = f'{parts[0].filename.split("/")[0]}/' if parts else ''
    expanded = sum(part.file_size for part in parts)
    if expanded > size:
        raise RefusedError(f'it has {size:,} bytes and expands to {expanded:,} bytes of memory')
    if any(part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for part in parts):
        raise RefusedError('its parts have a compression that PyTorch does not write')
    # PyTorch ignores case in names and uses one of two equal ones; Python uses the last.
    if len({part.filename.lower() for part in parts if part.filename.startswith(root)}) < len(parts):
        raise UserError('it names a part twice or outside of its folder')
    if f'{root}constants.pkl' in archive.namelist():
        raise RefusedError('it is a TorchScript program, which runs when it is read')
    return f'{root}data.pkl', {part.filename.removeprefix(f'{root}data/'): part.file_size for part in parts}


def check_pickles(path: Path) -> None:
    """Check a file of ``torch.save`` before PyTorch 1.6: pickles followed by storages; errors as of an archive."""
    with path.open('rb') as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        scan = Scan(len(content))
        for _ in range(5):  # magic number, version, system, checkpoint, names of storages
            scan(content)
        if (held := sum(scan.records.values())) > len(content):
            raise UserError(f'it has {len(content):,} bytes and asks for {held:,} bytes of memory')


def check_header(path: Path) -> None:
    """Raise RefusedError if the header of a safetensors file, which is read at once, is too large."""
    with path.open('rb') as file:
        length = int.from_bytes(file.read(8), 'little')
    if MAX_TABLE < length <= path.stat().st_size:
        raise RefusedError(f'its header has {length:,} bytes, more than the limit of {MAX_TABLE:,}')
