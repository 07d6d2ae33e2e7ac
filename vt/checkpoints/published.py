"""Published checkpoints: safetensors files, which say of themselves what they are by strings in their header."""

import hashlib
import json
import re
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch

from vt.errors import UserError

SUFFIX = '.safetensors'
NAMED_DIGITS = re.compile(r'-([0-9a-f]{8})\.safetensors$')


def read_safetensors(path: Path, map_location: Any = None) -> dict:
    """Weights, as ``state_dict``; below ``meta`` the data set's classes if ``tools/publish.py`` wrote the file.

    Raises:
        UserError: its content and the digits in its name differ.
    """
    from safetensors import safe_open

    require_named_content(path)
    device = map_location if isinstance(map_location, (str, torch.device)) else 'cpu'
    with safe_open(path, 'pt') as file:
        state = OrderedDict((name, file.get_tensor(name).to(device)) for name in sorted(file.keys()))
        return dict(state_dict=state, meta=describe_dataset(file.metadata() or {}))


def describe_dataset(metadata: dict[str, str]) -> dict:
    """``meta`` of a checkpoint, with the data set's classes if they are known."""
    try:
        classes = json.loads(metadata.get('classes', 'null'))
    except ValueError:
        classes = None
    return dict(dataset_meta=dict(classes=classes)) if isinstance(classes, list) else {}


def name_digits(content: bytes) -> str:
    """What a published file's name ends with: the first eight digits of its SHA-256."""
    return hashlib.sha256(content).hexdigest()[:8]


def require_named_content(path: Path) -> None:
    """Compare a file with the digits in its name, if there are any.

    Raises:
        UserError: it has other ones.
    """
    named = NAMED_DIGITS.search(path.name)
    if named:
        digits = name_digits(path.read_bytes())
        if digits != named.group(1):
            raise UserError(f'its content has the digits {digits}, its name others: it was changed')
