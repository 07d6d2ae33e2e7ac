"""What a checkpoint's file says of its own parts, compared with the file before PyTorch and safetensors read it."""

import mmap
import struct
import zipfile
from pathlib import Path

from vt.errors import UserError

from .pickles import RefusedError, Scan

MAX_TABLE = 8 << 20  # bytes of an archive's directory and of a safetensors header: some 70,000 tensors
# How an archive ends: sizes and positions of its directory, in 32 bits, and in 64 bits before that.
END, END_64, LOCATOR_64 = struct.Struct('<4s4H2IH'), struct.Struct('<4sQ2H2I4Q'), struct.Struct('<4sIQI')


def check_archive(path: Path, is_trusted: bool) -> None:
    """Compare an archive of ``torch.save`` with its checksums; unless it is trusted, follow its pickle by a Scan."""
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
        raise UserError(f'it is cut off or changed ({error})') from error


def _check_directory(path: Path) -> None:
    """Bound an archive's directory, and require the one position of it that PyTorch's reader and Python's both know."""
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
        raise UserError('it is cut off or changed (its directory is not at its end)')
    if length > MAX_TABLE:
        raise RefusedError(f'its directory has {length:,} bytes; {MAX_TABLE:,} are read')


def _check_parts(archive: zipfile.ZipFile, size: int) -> tuple[str, dict[str, int]]:
    """The name of an archive's pickle, and the bytes of its storages by name; what is clear before they are read."""
    parts = archive.infolist()
    root = f'{parts[0].filename.split("/")[0]}/' if parts else ''
    unfolded = sum(part.file_size for part in parts)
    if unfolded > size:
        raise RefusedError(f'it has {size:,} bytes and unfolds to {unfolded:,} bytes of memory')
    if any(part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for part in parts):
        raise RefusedError('its parts are packed as PyTorch never does')
    # PyTorch looks for a name without regard to case and takes one of two; Python takes the last.
    if len({part.filename.lower() for part in parts if part.filename.startswith(root)}) < len(parts):
        raise UserError('it names a part twice or outside of its folder')
    if f'{root}constants.pkl' in archive.namelist():
        raise RefusedError('it is a TorchScript program, which runs when it is read')
    return f'{root}data.pkl', {part.filename.removeprefix(f'{root}data/'): part.file_size for part in parts}


def check_pickles(path: Path) -> None:
    """Follow the pickles of a file from before PyTorch 1.6, behind which its storages are; errors as of an archive."""
    with path.open('rb') as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        scan = Scan(len(content))
        for _ in range(5):  # a number, a version, the system, the checkpoint, names of storages
            scan(content)
        if (held := sum(scan.records.values())) > len(content):
            raise UserError(f'it has {len(content):,} bytes and asks for {held:,} bytes of memory')


def check_header(path: Path) -> None:
    """Bound the header of a safetensors file, which safetensors reads whole; raise a RefusedError."""
    with path.open('rb') as file:
        length = int.from_bytes(file.read(8), 'little')
    if MAX_TABLE < length <= path.stat().st_size:
        raise RefusedError(f'its header has {length:,} bytes; {MAX_TABLE:,} are read')
