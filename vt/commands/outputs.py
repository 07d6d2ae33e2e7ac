"""Output files of the command-line tools."""

import os
from pathlib import Path
from typing import Any

import torch

from vt.engine.run_record import describe_origin
from vt.errors import UserError
from vt.files import temporary_folder, write_json


def check_output(out: str | Path | None, *inputs: str | Path | None) -> None:
    """Raise a UserError, before any work is done, if a file cannot be written to a path, or is one of the inputs."""
    if out is None:
        return
    out = Path(out)
    if out.is_dir():
        raise UserError(f'{out} is a folder: give the name of a file to write')
    if out.exists() and any(path and os.path.exists(path) and out.samefile(path) for path in inputs):
        raise UserError(f'{out} is an input and would be overwritten: give another file to write')
    if out.is_file() or not out.exists():  # no device such as /dev/stdout
        check_folder(Path(os.path.realpath(out)).parent)


def check_folder(folder: Path) -> None:
    """Raise a UserError, before any work is done, if a folder can neither be written to nor created."""
    while not os.path.lexists(folder):
        folder = folder.parent
    try:
        with temporary_folder(folder):
            pass
    except OSError as error:
        raise UserError(f'{folder} is no folder that can be written to ({error.strerror}): give another') from error


def write_measured(out: str | Path | None, device: torch.device | str = 'cpu', **measured: Any) -> None:
    """Write measurements to a JSON file, if given, with the command, the device and versions."""
    if out:
        write_json(describe_origin(device) | measured, out)
        print(f'written to {out}')
