"""Find the newest checkpoint of a work directory that training can resume from."""

import os
import re
from pathlib import Path
from typing import NamedTuple

from vt.errors import UserError
from vt.untrusted_text import is_control

from .files import POINTER
from .pickles import RefusedError
from .sharded import read_rest

NAMES_OF_STATES = ('epoch_*.pth', 'iter_*.pth', 'interrupted*.pth')  # best_*.pth have no optimizer state
MAX_POINTER = 4096  # characters of last_checkpoint, the maximum of a path


def find_damage(path: str | Path) -> str | None:
    """Return in a few words why a checkpoint is damaged; None if it is complete, even if reading it is refused."""
    try:
        read_rest(path, map_location='meta')
    except RefusedError:
        return None
    except UserError as error:
        return getattr(error, 'reason', '') or str(error)
    return None


class State(NamedTuple):
    """State of training in a checkpoint."""

    position: tuple[int, int]  # epoch and iteration
    run: str | None  # id; None in a checkpoint of another program


def read_run(path: str | Path) -> str | None:
    """Return the id of the run that wrote a checkpoint; None for other programs and unreadable files."""
    state = read_state(path)
    return state.run if isinstance(state, State) else None


def state_in(checkpoint: dict) -> State | None:
    """Return the state of training in a checkpoint; None if it contains only weights."""
    meta, infos = checkpoint.get('meta'), checkpoint.get('message_hub', {}).get('runtime_info')
    position = (meta.get('epoch', 0), meta.get('iter')) if isinstance(meta, dict) else (None, None)
    run = infos.get('run') if isinstance(infos, dict) else None
    run = run if isinstance(run, str) and re.fullmatch(r'[\w-]{1,64}', run) else None
    return State(position, run) if all(isinstance(number, int) for number in position) else None


def find_newest_checkpoint(folder: str | Path, run: str | None = None) -> tuple[Path | None, list[tuple[Path, str]]]:
    """Find the newest complete checkpoint of a work directory that training can resume from.

    It is the one that ``last_checkpoint`` names if it is complete, else the one with the highest position among
    ``epoch_*.pth``, ``iter_*.pth`` and ``interrupted*.pth``. Files are looked for in ``folder`` first, since it may
    have been moved.

    Args:
        folder: the work directory.
        run: id of the run that must have written it; None for any run.

    Returns:
        Path of the checkpoint or None, and the damaged checkpoints, each with the problem. If all complete ones are of
        other runs, the damaged ones are assumed to be so, too, and are not returned.
    """
    folder = Path(folder)
    named = _named_checkpoint(folder)
    found = {} if named is None else {named: read_state(named)}
    if _own(found, run):
        return named, []
    folders = {folder, *(path.parent for path in found)}
    others = {path for each in folders for name in NAMES_OF_STATES for path in each.glob(name)} - {named}
    found |= {path: read_state(path) for path in sorted(others)}
    own = _own(found, run)
    newest = max(own, key=lambda path: (own[path].position, path.stat().st_mtime), default=None)
    only_others = not own and _own(found, None)
    damaged = [] if only_others else [(path, state) for path, state in found.items() if isinstance(state, str)]
    return newest, damaged


def _own(found: dict[Path, State | str], run: str | None) -> dict[Path, State]:
    states = {path: state for path, state in found.items() if isinstance(state, State)}
    return {path: state for path, state in states.items() if run in (None, state.run)}


def _named_checkpoint(folder: Path) -> Path | None:
    """Return the file that ``last_checkpoint`` names; it need not exist."""
    pointer = folder / POINTER
    if not pointer.is_file():
        return None
    with pointer.open(errors='replace') as file:
        name = file.read(MAX_POINTER + 1).strip()
    if not name or len(name) > MAX_POINTER or any(map(is_control, name)):  # damaged, for example by a power failure
        return None
    beside = folder / Path(name).name
    return Path(name) if not os.path.exists(beside) and os.path.exists(name) else beside


def read_state(path: str | Path) -> State | str:
    """Return the state of training in a checkpoint, or why training cannot resume from it, without reading weights."""
    try:
        loaded = read_rest(path, map_location='meta')
    except UserError as error:
        return getattr(error, 'reason', '') or str(error)
    return state_in(loaded) or 'it contains only weights'
