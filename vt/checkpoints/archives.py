"""Check the structure of files of ``torch.save`` before PyTorch reads them."""

import zipfile
from pathlib import Path

from vt.errors import DamagedError

from .pickles import check_names, refused


def check_archive(path: Path, is_trusted: bool) -> None:
    """Check an archive of ``torch.save``: its checksums, and unless it is trusted its size and the names in its pickle.

    Raises:
        DamagedError: the file is damaged.
        RefusedError: it declares more than it holds, or asks for more than weights need.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            root = f'{parts[0].filename.split("/")[0]}/' if parts else ''
            size, expanded = path.stat().st_size, sum(part.file_size for part in parts)
            if expanded > size and not is_trusted:
                raise refused(path, f'it has {size:,} bytes and expands to {expanded:,}')
            if damaged := archive.testzip():
                raise DamagedError(f'its part {damaged} differs from its checksum')
            if is_trusted:
                return
            if f'{root}constants.pkl' in archive.namelist():
                raise refused(path, 'it is a TorchScript program, which runs when it is read')
            check_names(path, archive.read(f'{root}data.pkl'))
    except zipfile.BadZipFile as error:
        raise DamagedError(f'it is truncated or changed ({error})') from error


def check_pickles(path: Path) -> None:
    """Check the names in a file of ``torch.save`` before PyTorch 1.6: five pickles, followed by storages."""
    with path.open('rb') as file:
        for _ in range(5):  # magic number, version, system, checkpoint, names of storages
            check_names(path, file)
