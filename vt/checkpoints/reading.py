"""Reading a file that may hold anything, so that no code of it runs."""

import contextlib
import os
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import torch

from .metadata import describe_dataset, require_named_content
from .pickled import ALLOWED, Finish

Source = str | Path | BytesIO


def read_untrusted(source: Source, map_location: Any = None) -> dict:
    """Read a checkpoint: tensors, numbers and plain Python.

    Args:
        source: path, or the bytes of a file.
        map_location: as ``torch.load`` takes it.

    Raises:
        OSError: it can't be opened.
        Exception: of any kind, for it can't be read this way; :func:`vt.checkpoints.refusal.explain` says why.
    """
    if is_safetensors(source):
        return read_safetensors(source, map_location)
    finish = Finish()
    with only(ALLOWED), warnings.catch_warnings():
        warnings.simplefilter('ignore')  # about protocols and kinds of archives
        _require_room(source, _archived_bytes(source))
        loaded = finish(torch.load(source, map_location=map_location, weights_only=True))
    _require_room(source, finish.num_bytes)
    return _require_dict(loaded)


@contextlib.contextmanager
def only(allowed: list[tuple[Any, str]]) -> Iterator[None]:
    """Let weights-only reading know these names alone; libraries may have added others to PyTorch's list."""
    before = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(allowed)
    try:
        yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)


def read_trusted(source: Source, map_location: Any = None) -> dict:
    """Read a checkpoint and run what it asks for."""
    if is_safetensors(source):
        return read_safetensors(source, map_location)
    return _require_dict(torch.load(source, map_location=map_location, weights_only=False))


def is_safetensors(source: Source) -> bool:
    return not isinstance(source, BytesIO) and str(source).endswith('.safetensors')


def read_safetensors(path: str | Path, map_location: Any = None) -> dict:
    """Weights, as ``state_dict``; below ``meta`` the data set's classes if ``tools/publish.py`` wrote the file."""
    from safetensors import safe_open

    require_named_content(Path(path))
    device = map_location if isinstance(map_location, (str, torch.device)) else 'cpu'
    with safe_open(path, 'pt') as file:
        state = OrderedDict((name, file.get_tensor(name).to(device)) for name in sorted(file.keys()))
        return dict(state_dict=state, meta=describe_dataset(file.metadata() or {}))


def _require_dict(loaded: Any) -> dict:
    """A checkpoint is a dict: mmengine's, or one of tensors by name."""
    if not isinstance(loaded, dict):
        raise ValueError(f'it holds a {type(loaded).__name__}, where a dict of weights is needed')
    return loaded


def _archived_bytes(source: Source) -> int:
    """How many bytes the parts of an archive say they have; 0 for other files."""
    try:
        with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(source) as archive:
            return sum(part.file_size for part in archive.infolist())
        return 0
    finally:
        if isinstance(source, BytesIO):
            source.seek(0)


def _require_room(source: Source, num_bytes: int) -> None:
    """Refuse what would unfold to more than the file has: compressed parts, or tensors beyond their data.

    ``torch.save`` writes neither; of such a file a few kilobytes could take all memory.
    """
    size = source.getbuffer().nbytes if isinstance(source, BytesIO) else os.path.getsize(source)
    if num_bytes > size:
        raise ValueError(f'it has {size:,} bytes and asks for {num_bytes:,} bytes of memory')
