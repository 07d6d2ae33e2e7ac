"""Convert checkpoints to tensors, numbers, strings and containers, when writing them and when reading those of others.

A pickle names functions and classes to call. PyTorch's weights-only reader calls only its own and those that it is
given. We give it :class:`Foreign` under all names that mmengine's files contain; it stores the arguments and calls
nothing, and numbers are extracted from it afterwards. Options of other trainers become dicts, see :class:`Ignored`.
numpy's own constructors are not safe: a file could choose the fields of a dtype, and make numpy follow invented
pointers. ``getattr`` would give it any function.
"""

import re
from collections import Counter, OrderedDict, deque
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer
from torch import optim

NAMES = (
    *(f'numpy.{core}.multiarray.{name}' for core in ('core', '_core') for name in ('_reconstruct', 'scalar')),
    *('numpy.ndarray', 'numpy.dtype', 'builtins.getattr', 'builtins.bytes'),
    *('mmengine.logging.history_buffer.HistoryBuffer', 'mmengine.config.config.ConfigDict'),
    'mmengine.optim.scheduler.param_scheduler.OneCycleParamScheduler',
    *(f'pathlib.{kind}{system}Path' for kind in ('', 'Pure') for system in ('Posix', 'Windows')),
    *(f'pathlib._local.{kind}{system}Path' for kind in ('', 'Pure') for system in ('Posix', 'Windows')),
)
# Classes of the options, optimizers and schedules that trainers store beside weights; the packages are not needed.
IGNORED = (
    *('argparse.Namespace', 'types.SimpleNamespace', 'collections.defaultdict', 'typing.Any'),
    *(f'builtins.{name}' for name in ('bool', 'dict', 'float', 'frozenset', 'int', 'list', 'object', 'range', 'slice')),
    *(f'builtins.{name}' for name in ('str', 'tuple', 'long', 'unicode', 'xrange')),  # PyTorch translates Python 2's
    *('decimal.Decimal', 'fractions.Fraction', 'uuid.UUID', 'uuid.SafeUUID'),
    *(f'datetime.{name}' for name in ('date', 'datetime', 'timedelta', 'timezone')),
    *('yacs.config.CfgNode', 'fvcore.common.config.CfgNode', 'detectron2.config.config.CfgNode'),
    *('addict.addict.Dict', 'easydict.EasyDict', 'mmcv.utils.config.ConfigDict', 'munch.Munch'),
    'ml_collections.config_dict.config_dict.ConfigDict',
    *(f'omegaconf.{name}' for name in ('dictconfig.DictConfig', 'listconfig.ListConfig')),
    *(f'omegaconf.base.{name}' for name in ('ContainerMetadata', 'Metadata')),
    *(f'omegaconf.nodes.{kind}Node' for kind in ('Any', 'Boolean', 'Bytes', 'Float', 'Integer', 'Path', 'String')),
    *(f'{package}.utilities.parsing.AttributeDict' for package in ('lightning.pytorch', 'pytorch_lightning')),
    'pytorch_lightning.callbacks.early_stopping.EarlyStopping',
    'pytorch_lightning.callbacks.model_checkpoint.ModelCheckpoint',
    *(f'{package}.utilities.data.AttributeDict' for package in ('lightning.fabric', 'lightning_fabric')),
    *(
        f'{kind.__module__}.{kind.__name__}'
        for module in (optim, optim.lr_scheduler)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, (optim.Optimizer, optim.lr_scheduler.LRScheduler))
    ),
)
NUMBERS = re.compile(r'[<>|](b1|[iu][1248]|f[248]|c8|c16)')  # dtypes for which any bytes are valid numbers
KEPT = (type(None), bool, int, float, complex, str, bytes, bytearray, torch.dtype, torch.device, torch.Size)
HISTORY = ('log_history', 'count_history', 'max_length')  # attributes of mmengine's HistoryBuffer
DROPPED = object()


class Foreign:
    """Placeholder for an object in a file; it stores the arguments of its constructor and its state."""

    __slots__ = ('arguments', 'state')

    def __new__(cls, *arguments) -> 'Foreign':
        self = super().__new__(cls)
        self.arguments, self.state = arguments, None
        return self

    def __setstate__(self, state: Any) -> None:
        self.state = state


class Ignored:
    """Placeholder for an object of which only items are read, as of a dict; it makes an ``OrderedDict``."""

    __slots__ = ()

    def __new__(cls, *arguments) -> OrderedDict:
        return OrderedDict()


PLACEHOLDERS = [(kind, name) for kind, names in ((Foreign, NAMES), (Ignored, IGNORED)) for name in names]


def make_plain(checkpoint: dict) -> set[str]:
    """Convert a checkpoint to tensors, numbers, strings and containers, in place.

    Histories are converted to their numbers, numpy arrays to tensors, and subclasses of containers to their base.

    Returns:
        Dotted keys of the values that were dropped. Functions are dropped without being listed: schedulers contain
        some, and create them again.
    """
    convert = Conversion()
    plain = convert(checkpoint)
    checkpoint.clear()
    checkpoint.update(plain)
    return {'.'.join(map(str, keys)) for keys in convert.dropped}


def restore_histories(checkpoint: dict) -> None:
    """Restore mmengine's histories from their numbers, in place, except on the meta device."""
    scalars = checkpoint.get('message_hub', {}).get('log_scalars', {})
    for name, value in scalars.items():
        if isinstance(value, dict) and tuple(value) == HISTORY and not value['log_history'].is_meta:
            log, count = (value[key].cpu().numpy() for key in HISTORY[:2])
            scalars[name] = HistoryBuffer(log, count, value['max_length'])


class Conversion:
    """Copy values to plain containers; an object that occurs twice is copied once.

    Attributes:
        dropped: keys of values that were left out, except functions and placeholders.
    """

    def __init__(self) -> None:
        self.dropped: set[tuple] = set()
        self._done: dict[int, tuple[Any, Any]] = {}

    def __call__(self, value: Any, keys: tuple = ()) -> Any:
        if type(value) in KEPT:
            return value
        if id(value) not in self._done:  # a reference to the value is stored, so that its id stays unique
            self._done[id(value)] = value, self._convert(value, keys)
        return self._done[id(value)][1]

    def _convert(self, value: Any, keys: tuple) -> Any:
        match value:
            case torch.Tensor():  # without attributes and hooks, which could replace its methods
                return torch.Tensor.detach(value)
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
            case int() | float() | str() | bytes():  # subclasses, such as members of an enumeration
                return next(kind(value) for kind in (int, float, str, bytes) if isinstance(value, kind))
        if value is not DROPPED and not callable(value):
            self.dropped.add(keys)
        return DROPPED

    def _convert_dict(self, value: dict, keys: tuple) -> dict:
        result = type(value)() if type(value) in (OrderedDict, Counter) else {}
        for key, item in type(value).items(value):  # attributes from a file do not replace methods
            name, plain = self(key, keys), self(item, (*keys, key))
            if name is not DROPPED and plain is not DROPPED:
                result[name] = plain
        if [*getattr(value, '__dict__', ())] == ['_metadata']:  # versions of a model's modules
            result._metadata = self(value._metadata, keys)
        return result


def _taken_from(value: Foreign) -> Any:
    """Return the numbers that a placeholder describes, as numpy, mmengine and Python do; drop everything else."""
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
        case (), None:  # empty bytes
            return b''
        case parts, None if all(isinstance(part, str) for part in parts):
            return str(PurePosixPath(*parts))
    return DROPPED


def _number(kind: Foreign) -> str | None:
    """Return numpy's name of the dtype that a placeholder describes; None if it is not a number."""
    match kind.arguments, kind.state:
        case (str(code), *_), (_, str(order), *_) if NUMBERS.fullmatch(order + code):
            return order + code
    return None
