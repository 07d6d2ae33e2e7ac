"""A checkpoint as tensors, numbers, text and containers alone, which every weights-only reader reads."""

from collections import Counter, OrderedDict, deque
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer

KEPT = (type(None), bool, int, float, complex, str, bytes, bytearray, torch.dtype, torch.device, torch.Size)
HISTORY = ('log_history', 'count_history', 'max_length')  # of mmengine's HistoryBuffer
DROPPED = object()


def make_plain(checkpoint: dict) -> set[str]:
    """Put numbers and tensors in the place of all else that a checkpoint holds.

    Histories become their numbers, which :func:`restore_histories` puts back; numpy's arrays and numbers become
    tensors and Python's; subclasses of containers become these. Functions are dropped: what a scheduler computes by is
    made anew with it.

    Args:
        checkpoint: changed in place.

    Returns:
        The places of other objects, which are dropped too.
    """
    dropped: set[str] = set()
    for name in checkpoint:
        checkpoint[name] = _plain(checkpoint[name], str(name), dropped)
    return dropped


def restore_histories(checkpoint: dict) -> None:
    """Make mmengine's histories again from what :func:`make_plain` left of them.

    Args:
        checkpoint: changed in place. One whose tensors are of the meta device stays as it is.
    """
    hub = checkpoint.get('message_hub')
    scalars = hub.get('log_scalars') if isinstance(hub, dict) else None
    for name, value in scalars.items() if isinstance(scalars, dict) else ():
        if isinstance(value, dict) and tuple(value) == HISTORY and not value['log_history'].is_meta:
            log, count = (value[key].cpu().numpy() for key in HISTORY[:2])
            scalars[name] = HistoryBuffer(log, count, value['max_length'])


def _plain(value: Any, place: str, dropped: set[str]) -> Any:
    if isinstance(value, torch.Tensor) or type(value) in KEPT:
        return value
    if isinstance(value, HistoryBuffer):
        value = dict(zip(HISTORY, (*value.data, value.max_length)))
    if isinstance(value, np.ndarray):
        return _plain_array(value, place, dropped)
    if isinstance(value, np.generic):
        return _plain(value.item(), place, dropped)
    if isinstance(value, dict):
        return _plain_dict(value, place, dropped)
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        items = [_plain(item, f'{place}.{index}', dropped) for index, item in enumerate(value)]
        items = [None if item is DROPPED else item for item in items]
        kind = tuple if isinstance(value, tuple) else set if isinstance(value, (set, frozenset)) else list
        return kind(items)
    for kind in (int, float, str, bytes):  # an enumeration's member, a text of some class
        if isinstance(value, kind):
            return kind(value)
    if not callable(value):
        dropped.add(place)
    return DROPPED


def _plain_array(array: np.ndarray, place: str, dropped: set[str]) -> Any:
    if array.dtype.kind not in 'biufc':
        return _plain(array.tolist(), place, dropped)
    return torch.from_numpy(array.astype(array.dtype.newbyteorder('='), order='C'))


def _plain_dict(value: dict, place: str, dropped: set[str]) -> dict:
    result = type(value)() if type(value) in (OrderedDict, Counter) else {}
    for key, item in value.items():
        plain = _plain(item, f'{place}.{key}', dropped)
        if plain is not DROPPED:
            result[_plain(key, place, dropped)] = plain
    if hasattr(value, '_metadata'):  # versions of a model's modules
        result._metadata = _plain(value._metadata, place, dropped)
    return result
