"""What a published checkpoint says of itself: strings in the header of a safetensors file."""

import hashlib
import json
import re
from pathlib import Path

NAMED_DIGITS = re.compile(r'-([0-9a-f]{8})\.safetensors$')


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
        ValueError: it has other ones.
    """
    named = NAMED_DIGITS.search(path.name)
    if named:
        digits = name_digits(path.read_bytes())
        if digits != named.group(1):
            raise ValueError(f'its content has the digits {digits}, its name others: it was changed')
