"""mmengine's ways to a checkpoint, each without running code from it.

Importing :mod:`vt.checkpoints` puts them in the place of mmengine's, for the whole process.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import torch
from mmengine.dist import barrier, get_dist_info
from mmengine.runner import checkpoint as mmengine_checkpoint
from mmengine.runner.checkpoint import CheckpointLoader

from .files import find_visible_damage
from .reading import Source, read_trusted, read_untrusted
from .refusal import explain, may_be_trusted
from .weights import load_weights, require_some_match, require_training_state, state_of

__all__ = [
    'install_loaders',
    'load_weights',
    'read_checkpoint',
    'read_safely',
    'require_some_match',
    'require_training_state',
    'state_of',
    'trust_checkpoints',
    'weights_only',
]

FLAG = '--trust-checkpoint'
FORCE, FORCE_NOT = 'TORCH_FORCE_WEIGHTS_ONLY_LOAD', 'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'
_trusts = False


def trust_checkpoints() -> None:
    """From here on let checkpoints run what they ask for, in this process and its workers."""
    global _trusts
    _trusts = True
    print(f'warning: {FLAG}: code in checkpoints runs; use it for files that you trust alone', file=sys.stderr)


@contextmanager
def weights_only(unless: bool = False) -> Iterator[None]:
    """Inside the block every ``torch.load`` is weights-only, whichever library calls it and how, also in workers.

    It is PyTorch's own switch; our tools work inside such a block.

    Args:
        unless: call :func:`trust_checkpoints` instead.
    """
    if unless:
        trust_checkpoints()
    before = {name: os.environ.pop(name, None) for name in (FORCE, FORCE_NOT)}  # PyTorch refuses to have both
    if not _trusts:
        os.environ[FORCE] = '1'
    try:
        yield
    finally:
        os.environ.pop(FORCE, None)
        os.environ.update({name: value for name, value in before.items() if value is not None})


def read_checkpoint(source: Source, map_location: Any = None) -> dict:
    """Read a checkpoint: weights-only, unless :func:`trust_checkpoints` was called.

    Checksums are compared first. Texts of configs are left out, since mmengine's ``resume`` and
    inferencers run them as Python.

    Args:
        source: path, or the bytes of a file.
        map_location: as ``torch.load`` takes it.

    Returns:
        mmengine's checkpoint, or tensors by name.

    Raises:
        FileNotFoundError: it is not there.
        OSError: it can't be opened.
        ValueError: it is damaged, or asks for more than tensors, numbers and plain Python.
    """
    name = 'the checkpoint'
    if not isinstance(source, BytesIO):
        name = str(source)
        _require_whole(Path(source))
    try:
        loaded = read_safely(source, map_location)
    except Exception as error:
        trusted = f'; if you trust whoever wrote it, add {FLAG}' if may_be_trusted(error) and not _trusts else ''
        raise ValueError(f'{name} is not loaded: {explain(error)}{trusted}') from error
    if not _trusts:
        _drop_configs(loaded)
    return loaded


def _require_whole(path: Path) -> None:
    try:
        damage = find_visible_damage(path)
    except OSError as error:
        raise type(error)(f'{path} could not be read ({error.strerror})') from error
    if not path.is_file():
        raise FileNotFoundError(f'there is no checkpoint {path}: correct load_from, or the path on the command line')
    if damage:
        raise ValueError(f'{path} is damaged: {damage}; take another copy of it')


def read_safely(source: Source, map_location: Any = None) -> dict:
    """As :func:`read_checkpoint`, with the texts of configs, and with errors as they come."""
    return (read_trusted if _trusts else read_untrusted)(source, map_location)


def _drop_configs(checkpoint: dict) -> None:
    """Take out the texts that mmengine runs: ``Runner.resume`` the first, its inferencers the others."""
    hub = checkpoint.get('message_hub')
    information = hub.get('runtime_info') if isinstance(hub, dict) else None
    for holder, name in ((checkpoint.get('meta'), 'config'), (checkpoint.get('meta'), 'cfg'), (information, 'cfg')):
        if isinstance(holder, dict):
            holder.pop(name, None)


def load_from_local(filename: str, map_location: Any = None) -> dict:
    """A file."""
    return read_checkpoint(os.path.expanduser(filename), map_location)


def load_from_http(
    filename: str, map_location: Any = None, model_dir: str | None = None, progress: bool | None = None
) -> dict:
    """A file behind an address. It stays in PyTorch's cache; one process of a machine's run fetches it.

    Raises:
        OSError: it could not be fetched.
    """
    folder = Path(model_dir or os.path.join(torch.hub.get_dir(), 'checkpoints'))
    path = folder / Path(urlparse(filename).path).name
    rank, _ = get_dist_info()
    try:
        if rank == 0:
            _fetch(filename, path, progress)
    finally:
        barrier()
    _fetch(filename, path, progress)  # on another machine
    return read_checkpoint(path, map_location)


def _fetch(address: str, path: Path, progress: bool | None) -> None:
    if path.is_file():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        torch.hub.download_url_to_file(address, str(path), progress=os.isatty(0) if progress is None else progress)
    except (OSError, ValueError) as error:
        raise OSError(f'{address} could not be fetched ({error}): fetch it yourself and give its path') from error


def safe_torch_load(file: Source, map_location: Any = None, weights_only: bool | None = None) -> dict:
    """mmengine's, which runs what a file asks for where weights alone can't be read."""
    return read_checkpoint(file, map_location)


def install_loaders() -> None:
    """Put these readers in the place of mmengine's.

    Its other loaders only turn a name into an address or into bytes, and then call these.
    """
    CheckpointLoader.register_scheme('', load_from_local, force=True)
    CheckpointLoader.register_scheme(('http://', 'https://'), load_from_http, force=True)
    mmengine_checkpoint.load_from_local = load_from_local
    mmengine_checkpoint.load_from_http = load_from_http
    mmengine_checkpoint._safe_torch_load = safe_torch_load
    mmengine_checkpoint.get_torch_safe_globals = list  # its own holds getattr
