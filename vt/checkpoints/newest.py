"""The newest checkpoint of a work directory that training can go on from."""

import os
import re
from pathlib import Path

from vt.errors import UserError
from vt.untrusted_text import is_control

from .files import POINTER
from .reading import CheckpointError
from .sharded import read_rest

NAMES_OF_STATES = ('epoch_*.pth', 'iter_*.pth', 'interrupted*.pth')  # best_*.pth lack the optimizer
MAX_POINTER = 4096  # characters of last_checkpoint, as of a path


def find_damage(path: str | Path) -> str | None:
    """Why a checkpoint can't be used, in a few words; None if it is whole, though its reading may be refused."""
    try:
        read_rest(path, map_location='meta')
    except CheckpointError as error:
        return None if error.asks_more else error.reason
    except UserError as error:
        return str(error)
    return None


def read_run(path: str | Path) -> str | None:
    """The id of the run that wrote a checkpoint; None of earlier versions' and of what can't be read."""
    state = _read_state(path)
    return None if isinstance(state, str) else state[1]


def run_in(infos: dict | None) -> str | None:
    """The id of a run in the ``runtime_info`` of mmengine's message hub, if there is one that can be an id."""
    run = infos.get('run') if isinstance(infos, dict) else None
    return run if isinstance(run, str) and re.fullmatch(r'[\w-]{1,64}', run) else None


def find_newest_checkpoint(folder: str | Path, run: str | None = None) -> tuple[Path | None, list[tuple[Path, str]]]:
    """The newest checkpoint of a work directory that is whole and that training can go on from.

    It is the one that ``last_checkpoint`` names, or else, of ``epoch_*.pth``, ``iter_*.pth`` and ``interrupted*.pth``
    beside it, the whole one of the highest iteration. A folder may have been moved: names are looked for in it first.

    Args:
        folder: the work directory.
        run: the id of the run that must have written it; None for any.

    Returns:
        Its path, None if there is none, and the damaged ones passed over, each with what is wrong with it; where all
        whole ones are of other runs, so are the damaged ones, and none is returned.
    """
    folder = Path(folder)
    named = _named_checkpoint(folder)
    found = {} if named is None else {named: _read_state(named)}
    if _is_of(found.get(named), run):
        return named, []
    folders = {folder, *(path.parent for path in found)}
    others = {path for each in folders for name in NAMES_OF_STATES for path in each.glob(name)} - {named}
    found |= {path: _read_state(path) for path in sorted(others)}
    own = [path for path in found if _is_of(found[path], run)]
    newest = max(own, key=lambda path: (found[path][0], path.stat().st_mtime), default=None)
    only_others = not own and any(_is_of(state, None) for state in found.values())
    damaged = [] if only_others else [(path, state) for path, state in found.items() if isinstance(state, str)]
    return newest, damaged


def _is_of(state: tuple[int, str | None] | str | None, run: str | None) -> bool:
    return isinstance(state, tuple) and run in (None, state[1])


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
    return Path(name) if not os.path.exists(beside) and os.path.exists(name) else beside


def _read_state(path: str | Path) -> tuple[int, str | None] | str:
    """Iteration and run of a checkpoint, or why training can't go on from it; no weights are read."""
    try:
        loaded = read_rest(path, map_location='meta')
    except UserError as error:
        return getattr(error, 'reason', str(error))
    meta, infos = loaded.get('meta'), loaded.get('message_hub', {}).get('runtime_info')
    iteration = meta.get('iter') if isinstance(meta, dict) else None
    return (iteration, run_in(infos)) if isinstance(iteration, int) else 'it holds weights alone'
