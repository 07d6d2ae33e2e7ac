"""What a command line writes, and where."""

import math
import os
from pathlib import Path
from typing import Any

import mmengine
import torch

from vt.checkpoints.files import write_atomically
from vt.engine.run_record import describe_origin
from vt.errors import MissingFileError, UserError


def check_output(out: str | Path | None, *inputs: str | Path | None) -> None:
    """Refuse a file to write, before any work is done, that can't be written or is one of those that are read.

    Raises:
        MissingFileError: its folder is not there.
        UserError: it is one of the inputs, by this or another path, or a folder.
    """
    if out is None:
        return
    out = Path(out)
    if not out.parent.is_dir():
        raise MissingFileError(f'there is no folder {out.parent} to write {out.name} into')
    if out.is_dir():
        raise UserError(f'{out} is a folder: give the name of a file to write')
    if out.exists() and any(path and os.path.exists(path) and out.samefile(path) for path in inputs):
        raise UserError(f'{out} is read, and would be written over: give another file to write')


def check_figure(out: str | Path | None, *inputs: str | Path | None) -> None:
    """As :func:`check_output`, of a figure.

    Raises:
        UserError: its name does not end in what figures can be written as.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    check_output(out, *inputs)
    kinds = FigureCanvasAgg.get_supported_filetypes()
    if out is not None and Path(out).suffix[1:].lower() not in kinds:
        raise UserError(f'{out}: a figure is written as .{", .".join(sorted(kinds))}')


def write_json(record: Any, out: str | Path, indent: int = 2) -> None:
    """Write a record as JSON, whatever the file's name ends in; see :func:`as_plain`."""
    write_atomically(Path(out), mmengine.dump(as_plain(record), file_format='json', indent=indent))


def as_plain(value: Any) -> Any:
    """A record that JSON knows: tensors and arrays as lists; None for NaN and infinity, for which it has no number."""
    if isinstance(value, dict):
        return {key: as_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_plain(item) for item in value]
    if hasattr(value, 'tolist'):
        return as_plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_measured(out: str | Path | None, device: torch.device | str = 'cpu', **measured: Any) -> None:
    """Write what was measured as JSON, with the command, the device and the versions that it is from, if asked to."""
    if out:
        write_json(describe_origin(device) | measured, out)
        print(f'written to {out}')
