"""Files of measurements: JSON with one line for each run or row; what the rows share stands once, before them.

A file of runs has the keys of :data:`SHARED` in which its runs agree, and ``runs``, a list. A file of other
measurements has the command, the device, the versions and one or several tables.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from vt.engine.run.record import describe_origin
from vt.files import as_plain, read_json, write_atomically

# Of a run; label, seed, scores and what else tells runs apart are not among them.
SHARED = ('device', 'versions', 'date', 'length', 'iterations', 'batch_size', 'image_shape', 'options')
SHARED += ('kept_settings', 'tables')


def read_recorded(path: Path, hint: str) -> list[dict]:
    """Read the runs of a file, each with all its keys; ``training.json`` of a work directory has one run.

    Raises:
        MissingFileError: there is no such file; the message ends in ``hint``.
        UserError: it is damaged.
    """
    content = read_json(path, hint)
    if isinstance(content, list):  # of tools/analysis/report.py scores --out
        return content
    if 'runs' not in content:
        return [content]
    shared = {key: value for key, value in content.items() if key != 'runs'}
    return [shared | run for run in content['runs']]


def write_recorded(path: Path, runs: Sequence[dict]) -> None:
    """Write a file of runs."""
    shared = {key: runs[0][key] for key in SHARED if all(key in run and run[key] == runs[0][key] for run in runs)}
    rows = [{key: value for key, value in run.items() if key not in shared} for run in runs]
    write_atomically(path, lay_out(shared | dict(runs=rows)))


def write_measured(out: str | Path | None, device: torch.device | str = 'cpu', **measured: Any) -> None:
    """Write measurements to a file, if given, with the command, the device and versions."""
    if out:
        write_atomically(out, lay_out(describe_origin(device) | measured))
        print(f'written to {out}')


def lay_out(content: dict[str, Any]) -> str:
    """The text of a file: a line for each key, and for each row of a list or dict whose items are lists or dicts."""
    lines = [f' {json.dumps(key)}: {_lay_out_table(value)}' for key, value in as_plain(content).items()]
    return '{\n' + ',\n'.join(lines) + '\n}\n'


def _lay_out_table(value: Any) -> str:
    rows = [*value.values()] if isinstance(value, dict) else value
    if not isinstance(rows, list) or not rows or not all(isinstance(row, (dict, list)) for row in rows):
        return json.dumps(value)
    if isinstance(value, dict):
        lines = [f'  {json.dumps(key)}: {json.dumps(row)}' for key, row in value.items()]
        return '{\n' + ',\n'.join(lines) + '\n }'
    return '[\n' + ',\n'.join(f'  {json.dumps(row)}' for row in rows) + '\n ]'
