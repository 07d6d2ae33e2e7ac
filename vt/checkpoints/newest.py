"""Find the newest checkpoint of a work directory that training can resume from."""

import os
import re
from pathlib import Path

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


def read_run(path: str | Path) -> str | None:
    """Return the id of the run that wrote a checkpoint; None for earlier versions and unreadable files."""
    state = _read_state(path)
    return None if isinstance(state, str) else state[1]


def run_in(infos: dict | None) -> str | None:
    """Return the id of the run in ``runtime_info`` of mmengine's message hub; None without a valid one."""
    run = infos.get('run') if isinstance(infos, dict) else None
    return run if isinstance(run, str) and re.fullmatch(r'[\w-]{1,64}', run) else None


def find_newest_checkpoint(folder: str | Path, run: str | None = None) -> tuple[Path | None, list[tuple[Path, str]]]:
    """Find the newest complete checkpoint of a work directory that training can resume from.

    It is the one that ``last_checkpoint`` names if it is complete, else the one with the highest iteration among
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


def _read_state(path: str | Path) -> tuple[int, str | None] | str:
    """Return iteration and run of a checkpoint, or why training cannot resume from it, without reading weights."""
    try:
        loaded = read_rest(path, map_location='meta')
    except UserError as error:
        return getattr(error, 'reason', '') or str(error)
    iteration, infos = (loaded.get('meta') or {}).get('iter'), loaded.get('message_hub', {}).get('runtime_info')
    return (iteration, run_in(infos)) if isinstance(iteration, int) else 'it contains only weights'
