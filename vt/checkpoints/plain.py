"""Checkpoints as tensors, numbers, text and containers alone: so they are written, and so others' files are read.

A pickle names functions and classes and has them called. PyTorch's weights-only reader calls none but its own and those
it is given. It is given one class of ours under the names in mmengine's files, which holds what a file hands over and
calls nothing; numbers are taken from it afterwards. numpy's own constructors would let a file choose the fields of a
data type, and so have numpy follow pointers that the file made up; ``getattr`` would let it reach any function.
"""

import re
from collections import Counter, OrderedDict, deque
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer

NAMES = (
    *(f'numpy.{core}.multiarray.{name}' for core in ('core', '_core') for name in ('_reconstruct', 'scalar')),
    *('numpy.ndarray', 'numpy.dtype', 'builtins.getattr', 'builtins.bytes'),
    *('mmengine.logging.history_buffer.HistoryBuffer', 'mmengine.config.config.ConfigDict'),
    'mmengine.optim.scheduler.param_scheduler.OneCycleParamScheduler',
)
NUMBERS = re.compile(r'[<>|](b1|[iu][1248]|f[248]|c8|c16)')  # data types whose bytes are numbers, whatever they are
KEPT = (type(None), bool, int, float, complex, str, bytes, bytearray, torch.dtype, torch.device, torch.Size)
HISTORY = ('log_history', 'count_history', 'max_length')  # of mmengine's HistoryBuffer
DROPPED = object()


class Foreign:
    """An object that a file describes: it holds the arguments of the call and the state, and does nothing."""

    __slots__ = ('arguments', 'state')

    def __new__(cls, *arguments) -> 'Foreign':
        self = super().__new__(cls)
        self.arguments, self.state = arguments, None
        return self

    def __setstate__(self, state: Any) -> None:
        self.state = state


def make_plain(checkpoint: dict) -> set[str]:
    """Replace, in place, all that is neither number, text nor tensor, and return the keys of what was dropped.

    Histories become their numbers, numpy's arrays tensors, subclasses of containers these. Functions are dropped
    without a word: what a scheduler computes by is made anew with it.
    """
    convert = Conversion()
    plain = convert(checkpoint)
    checkpoint.clear()
    checkpoint.update(plain)
    return {'.'.join(map(str, keys)) for keys in convert.dropped}


def restore_histories(checkpoint: dict) -> None:
    """Make mmengine's histories again from their numbers, in place; those of the meta device have none."""
    scalars = checkpoint.get('message_hub', {}).get('log_scalars', {})
    for name, value in scalars.items():
        if isinstance(value, dict) and tuple(value) == HISTORY and not value['log_history'].is_meta:
            log, count = (value[key].cpu().numpy() for key in HISTORY[:2])
            scalars[name] = HistoryBuffer(log, count, value['max_length'])


class Conversion:
    """Copy a checkpoint into plain containers, without what is no number or text; what is met twice is one object.

    Attributes:
        dropped: keys of what was left out, but for functions and for what a file describes.
    """

    def __init__(self) -> None:
        self.dropped: set[tuple] = set()
        self._done: dict[int, tuple[Any, Any]] = {}

    def __call__(self, value: Any, keys: tuple = ()) -> Any:
        if isinstance(value, torch.Tensor) or type(value) in KEPT:
            return value
        if id(value) not in self._done:  # the first of the two keeps its id from being given again
            self._done[id(value)] = value, self._convert(value, keys)
        return self._done[id(value)][1]

    def _convert(self, value: Any, keys: tuple) -> Any:
        match value:
            case Foreign():
                return self(_taken_from(value), keys)
            case HistoryBuffer():
                return self(dict(zip(HISTORY, (*value.data, value.max_length))), keys)
            case np.ndarray() if value.dtype.kind in 'biufc':
                return torch.from_numpy(value.astype(value.dtype.newbyteorder('='), order='C'))
            case np.ndarray() | np.generic():
                return self(value.tolist(), keys)
            case dict():
                return self._convert_dict(value, keys)
            case list() | tuple() | set() | frozenset() | deque():
                items = [self(item, (*keys, index)) for index, item in enumerate(value)]
                kind = next((kind for kind in (tuple, set) if isinstance(value, kind)), list)
                return kind(None if item is DROPPED else item for item in items)
            case int() | float() | str() | bytes():  # an enumeration's member, a text of some class
                return next(kind(value) for kind in (int, float, str, bytes) if isinstance(value, kind))
        if value is not DROPPED and not callable(value):
            self.dropped.add(keys)
        return DROPPED

    def _convert_dict(self, value: dict, keys: tuple) -> dict:
        result = type(value)() if type(value) in (OrderedDict, Counter) else {}
        for key, item in value.items():
            name, plain = self(key, keys), self(item, (*keys, key))
            if name is not DROPPED and plain is not DROPPED:
                result[name] = plain
        if hasattr(value, '_metadata'):  # versions of a model's modules
            result._metadata = self(value._metadata, keys)
        return result


def _taken_from(value: Foreign) -> Any:
    """The numbers that a file describes, as numpy, mmengine and Python do; all else is left out."""
    match value.arguments, value.state:
        case (Foreign() as kind, bytes(data)), None if number := _number(kind):
            return np.frombuffer(data, number)[0]
        case _, (_, tuple(shape), Foreign() as kind, in_fortran_order, data) if number := _number(kind):
            data = data if isinstance(data, bytes) else b''
            return np.frombuffer(data, number).reshape(shape, order='F' if in_fortran_order else 'C')
        case (), {'_log_history': log, '_count_history': count, 'max_length': int(max_length)}:
            return dict(zip(HISTORY, (log, count, max_length)))
        case (dict(items),), None:  # a config
            return items
        case (), None:  # of bytes
            return b''
    return DROPPED


def _number(kind: Foreign) -> str | None:
    """numpy's name of a data type that a file describes."""
    match kind.arguments, kind.state:
        case (str(code), *_), (_, str(order), *_) if NUMBERS.fullmatch(order + code):
            return order + code
    return None
