"""The newest checkpoint of a work directory that training can go on from."""

from pathlib import Path

from .files import POINTER
from .reading import CheckpointError, RefusedError, read_checkpoint
from .weights import has_place_in_training

NAMES_OF_STATES = ('epoch_*.pth', 'iter_*.pth', 'interrupted*.pth')  # best_*.pth lack the optimizer


def find_damage(path: str | Path) -> str | None:
    """Why a checkpoint can't be used, in a few words; None if it is whole, though its reading may be refused.

    Every byte of an archive that ``torch.save`` writes is compared with its checksum. Files of other kinds have none:
    of safetensors the lengths are compared, and the content with the digits that a published file has in its name;
    older pickles are read.
    """
    try:
        read_checkpoint(path, map_location='meta')
    except RefusedError:
        return None
    except CheckpointError as error:
        return error.reason
    except OSError as error:
        return str(error)
    return None


def find_newest_checkpoint(folder: str | Path) -> tuple[Path | None, list[tuple[Path, str]]]:
    """The newest checkpoint of a work directory that is whole and that training can go on from.

    It is the one that ``last_checkpoint`` names, or else, of ``epoch_*.pth``, ``iter_*.pth`` and ``interrupted*.pth``
    beside it, the whole one of the highest iteration. A folder may have been moved: names are looked for in it first.

    Args:
        folder: the work directory.

    Returns:
        Its path, None if there is none, and those that were passed over, each with what is wrong with it.
    """
    folder = Path(folder)
    named = _named_checkpoint(folder)
    damaged: list[tuple[Path, str]] = []
    if named is not None and _passes(named, damaged):
        return named, damaged
    folders = {folder, named.parent if named is not None else folder}
    paths = {path for place in folders for name in NAMES_OF_STATES for path in place.glob(name)} - {named}
    positions = {path: _read_position(path, sums=False)[0] for path in paths}
    for path in sorted(paths, key=lambda path: (positions[path], path.stat().st_mtime), reverse=True):
        if _passes(path, damaged):
            return path, damaged
    return None, damaged


def _named_checkpoint(folder: Path) -> Path | None:
    """The file that ``last_checkpoint`` names, whether it is there or not."""
    try:
        name = (folder / POINTER).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None
    if not name or '\0' in name:
        return None
    beside = folder / Path(name).name
    return Path(name) if not beside.is_file() and Path(name).is_file() else beside


def _passes(path: Path, damaged: list[tuple[Path, str]]) -> bool:
    """Whether training can go on from a file; otherwise it joins ``damaged``."""
    reason = _read_position(path)[1]
    if reason is not None:
        damaged.append((path, reason))
    return reason is None


def _read_position(path: Path, sums: bool = True) -> tuple[int, str | None]:
    """The iteration that a checkpoint was written at, or -1 and why it says none; its weights are not read."""
    try:
        checkpoint = read_checkpoint(path, map_location='meta', sums=sums)
    except CheckpointError as error:
        return -1, error.reason
    except OSError as error:
        return -1, str(error)
    if not has_place_in_training(checkpoint):
        return -1, 'it holds weights alone'
    return checkpoint['meta']['iter'], None
