"""What a checkpoint may hold besides tensors and plain Python, and what takes its place while it is read.

A pickle names functions and classes and has them called. PyTorch's weights-only reader calls none but its own and those
it is given. It is given none of numpy's and mmengine's, but the ones below, which hold numbers and nothing else:
numpy's own would let a file choose the flags and the fields of a data type, and so have numpy follow pointers that the
file made up; mmengine's ``HistoryBuffer`` would let it replace methods.
"""

from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer

PLAIN_TYPES = ('b1', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'f2', 'f4', 'f8', 'c8', 'c16')
STATISTICS = ('min', 'max', 'mean', 'current')


class NumberType:
    """In place of ``numpy.dtype``: one of numbers.

    Raises:
        ValueError: another one, such as that of objects.
    """

    def __init__(self, name: str, align: bool = False, copy: bool = False) -> None:
        if name not in PLAIN_TYPES:
            raise ValueError(f'an array of {name!r}, not of numbers')
        self.dtype = np.dtype(name)

    def __setstate__(self, state: tuple) -> None:
        """Take the byte order of a state, and nothing else."""
        self.dtype = self.dtype.newbyteorder('>' if state[1] == '>' else '=')


class Array:
    """In place of ``numpy.ndarray``: one of numbers, in memory of its own."""

    def __setstate__(self, state: tuple) -> None:
        _, shape, number_type, in_fortran_order, data = state
        array = np.frombuffer(data, number_type.dtype).reshape(shape, order='F' if in_fortran_order else 'C')
        self.array = array.astype(array.dtype.newbyteorder('='))


class History:
    """In place of ``HistoryBuffer``: its numbers, without the methods that a file names for it."""

    def __setstate__(self, state: dict) -> None:
        self.history = HistoryBuffer(max_length=int(state['max_length']))
        self.history._log_history = state['_log_history'].array
        self.history._count_history = state['_count_history'].array


def start_array(subtype: type, shape: tuple, code: bytes) -> Array:
    """In place of numpy's ``_reconstruct``; what the array holds comes with its state."""
    return Array()


def make_scalar(number_type: NumberType, data: bytes) -> np.generic:
    """In place of numpy's ``scalar``."""
    return np.frombuffer(data, number_type.dtype)[0]


def name_statistic(owner: type, name: str) -> str:
    """In place of ``getattr``, which is how a ``HistoryBuffer`` names its methods; it gets nothing.

    Raises:
        ValueError: any other use.
    """
    if owner is not History or name not in STATISTICS:
        raise ValueError(f'getattr({owner!r}, {name!r})')
    return name


def no_bytes() -> bytes:
    """In place of ``bytes``, which is how an empty array begins."""
    return b''


def plain_dict(items: dict) -> dict:
    """In place of mmengine's ``ConfigDict``, which a nested dict in a data set's ``metainfo`` is."""
    return dict(items)


ALLOWED = [
    *((start_array, f'numpy.{core}.multiarray._reconstruct') for core in ('core', '_core')),
    *((make_scalar, f'numpy.{core}.multiarray.scalar') for core in ('core', '_core')),
    (Array, 'numpy.ndarray'),
    (NumberType, 'numpy.dtype'),
    (History, 'mmengine.logging.history_buffer.HistoryBuffer'),
    (name_statistic, 'builtins.getattr'),
    (no_bytes, 'builtins.bytes'),
    (plain_dict, 'mmengine.config.config.ConfigDict'),
]


class Finish:
    """Put the real objects where their places were held, and add up the memory of the tensors.

    Attributes:
        num_bytes: of all tensors' storages; of a file that was saved, no more than it has.
    """

    def __init__(self) -> None:
        self._done: dict[int, tuple[Any, Any]] = {}
        self._storages: dict[int, int] = {}

    @property
    def num_bytes(self) -> int:
        return sum(self._storages.values())

    def __call__(self, value: Any) -> Any:
        """The finished value; dicts and lists are changed in place. What is met twice is one object, as before."""
        if id(value) not in self._done:
            self._done[id(value)] = value, value  # the second keeps its id from being given again
            self._done[id(value)] = self._finish(value), value
        return self._done[id(value)][0]

    def _finish(self, value: Any) -> Any:
        if isinstance(value, Array):
            return value.array
        if isinstance(value, History):
            return value.history
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            # Of the meta device all addresses are 0: it takes no memory, and gives parts of one storage one each.
            self._storages[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
        elif type(value) in (dict, OrderedDict):
            for name in value:
                value[name] = self(value[name])
        elif type(value) is list:
            value[:] = map(self, value)
        elif type(value) is tuple:
            return tuple(map(self, value))
        return value
