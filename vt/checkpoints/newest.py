"""Find the checkpoints of a work directory, and the newest one that training can resume from."""

import re
from pathlib import Path

from vt.errors import UserError
from vt.files import POINTER

from .reading import RefusedError, load_checkpoint

OWN = re.compile(r'(best_.+_|interrupted_|)(epoch|iter)_(0|[1-9]\d*)\.pth')  # names that runs give
NAMES_OF_STATES = ('epoch_*.pth', 'iter_*.pth', 'interrupted*.pth')  # best_*.pth have no optimizer state


def own_checkpoints(folder: Path) -> list[tuple[int, str, str, Path]]:
    """Return the files of a folder that are named as checkpoints of a run, links too, by their steps.

    Returns:
        Step, unit (``'epoch'``, ``'iter'``), prefix (``'best_SCORE_'``, ``'interrupted_'``, ``''``) and path of each.
    """
    matches = [(OWN.fullmatch(path.name), path) for path in folder.glob('*.pth')]
    return sorted((int(match[3]), match[2], match[1], path) for match, path in matches if match)


def find_damage(path: str | Path) -> str | None:
    """Return in one line why a checkpoint is damaged; None if it is complete, even if reading it is refused."""
    try:
        load_checkpoint(path, map_location='meta')
    except RefusedError:
        return None
    except UserError as error:
        return str(error)
    return None


def find_newest_checkpoint(folder: str | Path) -> tuple[Path | None, list[tuple[Path, str]]]:
    """Find the newest complete checkpoint of a work directory that training can resume from.

    It is the one that ``last_checkpoint`` names if it is complete, else the one with the highest position among
    ``epoch_*.pth``, ``iter_*.pth`` and ``interrupted*.pth``. Only the name of the file counts, since the folder may
    have been moved.

    Args:
        folder: the work directory.

    Returns:
        Path of the checkpoint or None, and the damaged checkpoints, each with the problem in one line.
    """
    folder = Path(folder)
    named = _named_checkpoint(folder)
    found = {} if named is None else {named: read_position(named)}
    if isinstance(found.get(named), tuple):
        return named, []
    others = {path for name in NAMES_OF_STATES for path in folder.glob(name)} - {named}
    found |= {path: read_position(path) for path in sorted(others)}
    complete = {path: position for path, position in found.items() if isinstance(position, tuple)}
    newest = max(complete, key=lambda path: (complete[path], path.stat().st_mtime), default=None)
    return newest, [(path, reason) for path, reason in found.items() if isinstance(reason, str)]


def _named_checkpoint(folder: Path) -> Path | None:
    """Return the file of the folder that ``last_checkpoint`` names; it need not exist."""
    pointer = folder / POINTER
    name = pointer.read_text(errors='replace').strip() if pointer.is_file() else ''
    return folder / Path(name).name if name else None


def read_position(path: str | Path) -> tuple[int, int] | str:
    """Return epoch and iteration of a checkpoint, or why training cannot resume from it, without reading weights."""
    try:
        loaded = load_checkpoint(path, map_location='meta')
    except UserError as error:
        return str(error)
    meta = loaded.get('meta')
    epoch, iteration = (meta.get('epoch', 0), meta.get('iter')) if isinstance(meta, dict) else (None, None)
    is_position = isinstance(epoch, int) and isinstance(iteration, int)
    return (epoch, iteration) if is_position else f'{path} contains only weights'
