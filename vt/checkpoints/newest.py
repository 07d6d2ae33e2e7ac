"""The newest checkpoint of a work directory that training can go on from."""

import os
from pathlib import Path

from vt.errors import UserError
from vt.untrusted_text import is_control

from .files import POINTER
from .reading import CheckpointError, load_checkpoint

NAMES_OF_STATES = ('epoch_*.pth', 'iter_*.pth', 'interrupted*.pth')  # best_*.pth lack the optimizer
MAX_POINTER = 4096  # characters of last_checkpoint, as of a path


def find_damage(path: str | Path) -> str | None:
    """Why a checkpoint can't be used, in a few words; None if it is whole, though its reading may be refused.

    Archives of ``torch.save`` are compared with their checksums, and published files with the digits in their name;
    of other safetensors the lengths are compared, and older pickles are read.
    """
    try:
        load_checkpoint(path, map_location='meta')
    except CheckpointError as error:
        return None if error.asks_more else error.reason
    except UserError as error:
        return str(error)
    return None


def find_newest_checkpoint(folder: str | Path) -> tuple[Path | None, list[tuple[Path, str]]]:
    """The newest checkpoint of a work directory that is whole and that training can go on from.

    It is the one that ``last_checkpoint`` names, or else, of ``epoch_*.pth``, ``iter_*.pth`` and ``interrupted*.pth``
    beside it, the whole one of the highest iteration. A folder may have been moved: names are looked for in it first.

    Returns:
        Its path, None if there is none, and those that were passed over, each with what is wrong with it.
    """
    folder = Path(folder)
    named = _named_checkpoint(folder)
    found = {} if named is None else {named: _read_iteration(named)}
    if isinstance(found.get(named), int):
        return named, []
    places = {folder, *(path.parent for path in found)}
    others = {path for place in places for name in NAMES_OF_STATES for path in place.glob(name)} - {named}
    found |= {path: _read_iteration(path) for path in sorted(others)}
    whole = [path for path in found if isinstance(found[path], int)]
    newest = max(whole, key=lambda path: (found[path], path.stat().st_mtime), default=None)
    return newest, [(path, found[path]) for path in found if isinstance(found[path], str)]


def _named_checkpoint(folder: Path) -> Path | None:
    """The file that ``last_checkpoint`` names, whether it is there or not."""
    pointer = folder / POINTER
    if not pointer.is_file():
        return None
    with pointer.open(errors='replace') as file:
        name = file.read(MAX_POINTER + 1).strip()
    if not name or len(name) > MAX_POINTER or any(map(is_control, name)):  # as after a loss of power
        return None
    beside = folder / Path(name).name
    return Path(name) if not os.path.isfile(beside) and os.path.isfile(name) else beside


def _read_iteration(path: Path) -> int | str:
    """The iteration that a checkpoint was written at, or why training can't go on from it; no weights are read."""
    try:
        meta = load_checkpoint(path, map_location='meta').get('meta')
    except UserError as error:
        return getattr(error, 'reason', str(error))
    iteration = meta.get('iter') if isinstance(meta, dict) else None
    return iteration if isinstance(iteration, int) else 'it holds weights alone'
