"""What a checkpoint of another writer may hold besides tensors and plain Python.

A pickle names functions and classes and has them called. PyTorch's weights-only reader calls none but its own and those
it is given. It is given one class of ours under a few names, which holds what a file hands over and calls nothing; the
numbers are taken from it afterwards. numpy's own constructors would let a file choose the flags and the fields of a
data type, and so have numpy follow pointers that the file made up; ``getattr`` would let it reach any function.
"""

import pickle
from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer

NAMES = (
    'numpy.core.multiarray._reconstruct',
    'numpy._core.multiarray._reconstruct',
    'numpy.core.multiarray.scalar',
    'numpy._core.multiarray.scalar',
    'numpy.ndarray',
    'numpy.dtype',
    'mmengine.logging.history_buffer.HistoryBuffer',
    'mmengine.config.config.ConfigDict',
    'mmengine.optim.scheduler.param_scheduler.OneCycleParamScheduler',
    'builtins.getattr',
    'builtins.bytes',
)
PLAIN_TYPES = ('b1', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'f2', 'f4', 'f8', 'c8', 'c16')
# The methods that mmengine's histories and OneCycleLR name; they are left out, since each makes its own.
METHODS = {
    'HistoryBuffer': ('min', 'max', 'mean', 'current'),
    'OneCycleParamScheduler': ('_annealing_cos', '_annealing_linear'),
}
LEFT_OUT = object()


class ForeignError(pickle.UnpicklingError):
    """A file asks for something else than numbers, arrays of numbers, histories of them and configs."""


class Foreign:
    """An object that a file describes: it holds the arguments of the call and the state, and does nothing.

    Each name has a subclass of its own.
    """

    __slots__ = ('arguments', 'state')
    name = ''

    def __new__(cls, *arguments) -> 'Foreign':
        self = super().__new__(cls)
        self.arguments, self.state = arguments, None
        return self

    def __setstate__(self, state: Any) -> None:
        self.state = state


ALLOWED = [(type('Foreign', (Foreign,), dict(__slots__=(), name=name.rpartition('.')[2])), name) for name in NAMES]


class Conversion:
    """Put numbers, arrays and histories in the place of :class:`Foreign`, and add up the memory of the tensors.

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
        """The converted value; dicts and lists are changed in place. What is met twice is one object, as before.

        Raises:
            ForeignError: there is another object.
        """
        if id(value) not in self._done:
            self._done[id(value)] = value, value  # the second keeps its id from being given again
            self._done[id(value)] = self._convert(value), value
        return self._done[id(value)][0]

    def _convert(self, value: Any) -> Any:
        if isinstance(value, Foreign):
            return _make(value.name, self(value.arguments), self(value.state))
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            # Of the meta device all addresses are 0: it takes no memory.
            self._storages[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
        elif type(value) in (dict, OrderedDict):
            items = list(value.items())
            value.clear()
            for key, item in items:
                converted = self(item)
                if converted is not LEFT_OUT:
                    value[self(key)] = converted
        elif type(value) is list:
            value[:] = map(self, value)
        elif type(value) in (tuple, set):
            return type(value)(map(self, value))
        return value


def _make(name: str, arguments: tuple, state: Any) -> Any:
    """What a :class:`Foreign` stands for."""
    match name, arguments, state:
        case 'dtype', (str(code), *_), None | (_, str(), *_) if code in PLAIN_TYPES:
            return np.dtype(code).newbyteorder('>' if state and state[1] == '>' else '=')
        case '_reconstruct', _, (_, tuple(shape), np.dtype() as number, in_fortran_order, bytes(data)):
            array = np.frombuffer(data, number).reshape(shape, order='F' if in_fortran_order else 'C')
            return array.astype(number.newbyteorder('='))  # in memory of its own
        case 'scalar', (np.dtype() as number, bytes(data)), None:
            return np.frombuffer(data, number)[0]
        case 'HistoryBuffer', (), {'_log_history': np.ndarray() as log, '_count_history': np.ndarray() as count}:
            return HistoryBuffer(log, count, int(state['max_length']))
        case 'getattr', (type() as owner, str(method)), None if method in METHODS.get(getattr(owner, 'name', ''), ()):
            return LEFT_OUT
        case 'ConfigDict', (dict(items),), None:
            return items
        case 'bytes', (), None:
            return b''
    raise ForeignError(f'it asks for {name}{_shown(arguments)}, which no weights need')


def _shown(arguments: tuple) -> str:
    return f'({", ".join(getattr(value, "name", repr(value)[:40]) for value in arguments)})'
