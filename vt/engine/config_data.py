"""Describe the settings of a config as plain data, and by a digest."""

import hashlib
import json
import re
from typing import Any

from mmengine.config import Config


def digest_config(cfg: Config) -> str:
    """Return a digest of the settings of a training, the same in every process and on every machine.

    The seed, ``work_dir``, ``launcher`` and ``pin_memory`` are left out, since they do not change what is trained.
    """
    settings = cfg.to_dict() | dict(work_dir=None, launcher=None)
    settings['randomness'] = (settings.get('randomness') or {}) | dict(seed=None)
    for name, loader in settings.items():
        if name.endswith('_dataloader') and isinstance(loader, dict):
            settings[name] = loader | dict(pin_memory=None)
    text = json.dumps(as_data(settings), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def as_data(value: Any) -> Any:
    """Convert a value of a config to JSON data: classes and functions to their names, other objects to their repr."""
    return json.loads(json.dumps(value, default=_as_data))


def _as_data(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return sorted(json.dumps(as_data(item), sort_keys=True) for item in value)
    if hasattr(value, 'tolist'):  # the repr of an array is shortened
        return value.tolist()
    name = getattr(value, '__qualname__', None)
    return f'{value.__module__}.{name}' if name else re.sub(r' at 0x[0-9a-f]+', '', repr(value))
