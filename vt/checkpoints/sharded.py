"""Sharded checkpoints: folders to which each process writes its shards of the tensors, by PyTorch's DCP.

The shards are safetensors files, whose headers describe which part of which tensor they hold. ``run.pth`` in the folder
is the checkpoint without these tensors, with the sizes of the files. Neither can contain code. Any number of processes
can read it.
"""

import copy
import io
import os
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed
from torch.distributed import checkpoint as dcp
from torch.distributed.tensor import DTensor, zeros

from vt.errors import DamagedError
from vt.untrusted_text import printable

from .files import REST, file_in, interpreting, write_atomically
from .reading import load_checkpoint


def split(value: Any, shards: dict[str, DTensor], place: str = '') -> Any:
    """Return a copy of a checkpoint on the CPU without its sharded tensors, which are added to ``shards`` by path.

    Each is replaced by None.
    """
    if isinstance(value, DTensor):
        # DCP cannot copy views into a larger tensor, as gradients are.
        shards[place] = value.detach().clone() if value.storage_offset() else value.detach()
        return None
    if isinstance(value, Tensor):
        return value.detach().to('cpu', copy=True)
    result = copy.copy(value)
    for name, item in _items(value):
        result[name] = split(item, shards, f'{place}/{name}')
    return result


def _join(value: Any, tensors: dict[str, Tensor], place: str = '') -> Any:
    if value is None:
        return tensors.get(place)
    for name, item in _items(value):
        value[name] = _join(item, tensors, f'{place}/{name}')
    return value


def _items(value: Any) -> list[tuple[Any, Any]]:
    is_list = isinstance(value, list)
    return list(enumerate(value)) if is_list else list(value.items()) if isinstance(value, dict) else []


def write_rest(folder: Path, rest: dict) -> None:
    """Write what is not sharded, and the sizes of the files that belong to it, which must exist."""
    sizes = {path.name: path.stat().st_size for path in folder.glob('*.safetensors')}
    content = io.BytesIO()
    torch.save(dict(rest, shards=sizes), content)
    write_atomically(folder / REST, content.getbuffer())


def read_rest(folder: str | Path, map_location: Any = 'cpu') -> dict:
    """Read what is not sharded of a checkpoint: everything if it is a file.

    Raises:
        UserError: it is damaged, or a file of the folder is missing or of another size.
    """
    rest = load_checkpoint(file_in(folder, REST) if os.path.isdir(folder) else folder, map_location)
    with interpreting(folder):
        for name, size in (rest.pop('shards', None) or {}).items():
            path = file_in(folder, os.path.basename(str(name)))
            found = path.stat().st_size if path.is_file() else 'no'
            if found != size:
                raise DamagedError(f'{printable(path.name, 80)} has {found} bytes, not {printable(size, 80)}')
    return rest


def read_sharded(
    folder: str | Path,
    like: DTensor | None = None,
    group: distributed.ProcessGroup | None = None,
    part: str = '',
) -> dict:
    """Read a checkpoint that was written by any number of processes.

    Args:
        folder: folder of the checkpoint, or a file, which is read completely.
        like: tensor with the placement of the result, if several processes read together, each its own shards; None
            for one process that reads everything.
        group: process group of these processes, on CPUs.
        part: key of the tensors to read, such as ``'state_dict'``; all by default.

    Raises:
        UserError: it is damaged.
    """
    rest = read_rest(folder)
    if not os.path.isdir(folder):
        return rest
    reader = dcp.HuggingFaceStorageReader(str(folder))
    make = torch.zeros if like is None else partial(zeros, device_mesh=like.device_mesh, placements=like.placements)
    with interpreting(folder):
        for path in Path(folder).glob('*.safetensors'):
            file_in(folder, path.name)
        tensors = {
            place: make(held.size, dtype=held.properties.dtype)
            for place, held in sorted(reader.read_metadata().state_dict_metadata.items())
            if place.startswith(f'/{part}') and isinstance(held, dcp.TensorStorageMetadata)
        }
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # about a single reading process
            dcp.load(tensors, storage_reader=reader, process_group=group, no_dist=like is None)
        return _join(rest, tensors)
