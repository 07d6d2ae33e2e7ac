"""Convert checkpoints to tensors, numbers, strings and containers, when writing them and when reading untrusted ones.

A pickle names functions and classes to call. :mod:`vt.checkpoints.pickles` calls none of them: a name that files of
PyTorch, mmengine and other trainers contain is read as an :class:`OpaqueObject`, which stores its arguments and state.
Tensors and numbers are made of them here, so that no argument that a file chooses reaches ``getattr`` or numpy's own
constructors, whose dtypes could make it follow invented pointers. Options of other trainers become dicts.
"""

import re
from collections import Counter, OrderedDict, deque
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer
from torch import optim

from vt.errors import DamagedError

# What is read; the packages are not needed.
READ_NAMES = (
    *('collections.OrderedDict', 'collections.Counter', 'builtins.set', 'builtins.bytearray', 'builtins.complex'),
    *('_codecs.encode', 'torch.Size', 'torch.device', 'torch.Tensor', 'torch.nn.parameter.Parameter'),
    *(f'torch._utils._rebuild_{name}' for name in ('tensor', 'tensor_v2', 'tensor_v3')),
    *(f'torch._utils._rebuild_{name}' for name in ('parameter', 'parameter_with_state')),
    'torch._tensor._rebuild_from_type_v2',
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
PICKLE_NAMES = {*READ_NAMES, *IGNORED}
# Names of storages and of PyTorch's first tensors, ``torch.FloatStorage``, whose dtypes have other names.
TYPED = re.compile(r'torch\.(storage\.|cuda\.)?(\w+)(Storage|Tensor)')
DTYPES = dict(Double='float64', Float='float32', Half='float16', BFloat16='bfloat16', Untyped='uint8', Byte='uint8')
DTYPES |= dict(Char='int8', Short='int16', Int='int32', Long='int64', Bool='bool')
DTYPES |= dict(ComplexFloat='complex64', ComplexDouble='complex128')
NUMBERS = re.compile(r'[<>|](b1|[iu][1248]|f[248]|c8|c16)')  # dtypes for which any bytes are valid numbers
KEPT = (type(None), bool, int, float, complex, str, bytes, bytearray, torch.dtype, torch.device, torch.Size)
HISTORY = ('log_history', 'count_history', 'max_length')  # attributes of mmengine's HistoryBuffer
DROPPED = object()


class OpaqueObject:
    """Placeholder for an object in a file, or a storage; it stores the arguments of its constructor, state and items.

    Attributes:
        name: full name of the class or function, of which each file has a subclass of its own.
    """

    __slots__ = ('arguments', 'items', 'state')
    name = ''

    def __new__(cls, *arguments) -> 'OpaqueObject':
        """Store the arguments; a subclass may return another value."""
        self = super().__new__(cls)
        self.arguments, self.state, self.items = arguments, None, []
        return self

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items.append((key, value))


class Text(OpaqueObject):
    """Placeholder for ``_codecs.encode``, with which pickle writes bytes; it decodes them."""

    __slots__ = ()

    def __new__(cls, text: str, encoding: str) -> bytes:
        """Return the bytes of a text, whatever its encoding is called."""
        return text.encode('latin1')


def placeholder(name: str) -> type[OpaqueObject] | None:
    """Return a placeholder for the full name of a class or function, None for a name that no weights need."""
    found = type('Name', (Text if name == '_codecs.encode' else OpaqueObject,), dict(name=name, __slots__=()))
    return found if name in PICKLE_NAMES or dtype_of(found) else None


def dtype_of(kind: type[OpaqueObject]) -> torch.dtype | None:
    """Return the dtype with the name of a placeholder, or of the storage or tensor with it; None for others."""
    typed = TYPED.fullmatch(kind.name)
    name = DTYPES.get(typed[2], '') if typed else kind.name.removeprefix('torch.')
    dtype = vars(torch).get(name) if kind.name.startswith('torch.') else None
    return dtype if isinstance(dtype, torch.dtype) else None


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
        """Return the plain value, at the dotted ``keys``; :data:`DROPPED` for one that is left out."""
        if type(value) in KEPT:
            return value
        if id(value) not in self._done:  # a reference to the value is stored, so that its id stays unique
            self._done[id(value)] = value, self._convert(value, keys)
        return self._done[id(value)][1]

    def _convert(self, value: Any, keys: tuple) -> Any:
        match value:
            case torch.Tensor():  # without attributes and hooks, which could replace its methods
                return torch.Tensor.detach(value)
            case OpaqueObject():
                return self(self._made_of(value), keys)
            case type() if issubclass(value, OpaqueObject):
                return dtype_of(value) or DROPPED
            case HistoryBuffer():
                return self(dict(zip(HISTORY, (*value.data, value.max_length))), keys)
            case np.ndarray() | np.generic():
                return self._convert_numbers(value, keys)
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

    def _convert_numbers(self, value: np.ndarray | np.generic, keys: tuple) -> Any:
        if isinstance(value, np.ndarray) and value.dtype.kind in 'biufc':
            return torch.from_numpy(value.astype(value.dtype.newbyteorder('='), order='C'))
        return self(value.tolist(), keys)

    def _convert_dict(self, value: dict, keys: tuple) -> dict:
        result = type(value)() if type(value) in (OrderedDict, Counter) else {}
        for key, item in type(value).items(value):  # attributes from a file do not replace methods
            name, plain = self(key, keys), self(item, (*keys, key))
            if name is not DROPPED and plain is not DROPPED:
                result[name] = plain
        if [*getattr(value, '__dict__', ())] == ['_metadata']:  # versions of a model's modules
            result._metadata = self(value._metadata, keys)
        return result

    def _made_of(self, value: OpaqueObject) -> Any:
        """Return the tensor, array or other value that a known object in a file stands for; DROPPED for all others."""
        if value.name in IGNORED:
            return OrderedDict(value.items)
        name = value.name.rpartition('.')[2]
        match name, value.arguments:
            case 'Size' | 'device', content:
                return getattr(torch, name)(*content)
            case '_rebuild_tensor' | '_rebuild_tensor_v2' | '_rebuild_tensor_v3', content:
                return self._tensor(*content)
            case _, () if dtype_of(type(value)):  # before PyTorch 0.2
                return self._tensor(*value.state)
            case '_rebuild_parameter' | '_rebuild_parameter_with_state' | 'Parameter', (content, *_):
                return content
            case '_rebuild_from_type_v2', (type() as function, _, content, _) if issubclass(function, OpaqueObject):
                return function(*content)  # without attributes
        if value.name.startswith('torch.'):
            raise DamagedError(f'its {value.name} has unexpected arguments')
        return _made_without_torch(name, value)

    def _tensor(self, stored: OpaqueObject, offset: int, size: Any, stride: tuple[int, ...], *more) -> torch.Tensor:
        """Return a tensor of a storage; of an untyped one, ``more`` has the dtype."""
        (numbers,) = stored.arguments
        kinds = [dtype_of(each) for each in more if isinstance(each, type)]
        if more[2:] and isinstance(more[-1], dict) and more[-1]:
            raise DamagedError('it has a tensor with the conjugate bit set')
        numbers = numbers.view(kinds[0]) if kinds else numbers
        result = torch.empty(0, dtype=numbers.dtype, device=numbers.device)
        return result.set_(numbers.untyped_storage(), numbers.storage_offset() + offset, self(size), stride)


def _made_without_torch(name: str, value: OpaqueObject) -> Any:
    """Return a value of Python, NumPy or mmengine, by the last part of its name; DROPPED for other objects."""
    match name, value.arguments, value.state:
        case 'OrderedDict' | 'Counter', content, state:
            made = (OrderedDict if name == 'OrderedDict' else Counter)(*content)
            made.update(value.items)
            vars(made).update(state or {})
            return made
        case 'set', (items,), _:
            return set(items)
        case 'complex' | 'bytearray', content, _:
            return (complex if name == 'complex' else bytearray)(*content)
        case 'ConfigDict', (dict(items),), _:
            return items
        case 'bytes', (), _:
            return b''
        case _, parts, _ if name.endswith('Path'):
            return str(PurePosixPath(*parts))
        case 'scalar', (OpaqueObject() as kind, bytes(data)), _ if number := _number(kind):
            return np.frombuffer(data, number)[0]
        case '_reconstruct', _, (_, tuple(shape), OpaqueObject() as kind, order, data) if number := _number(kind):
            data = data if isinstance(data, bytes) else b''
            return np.frombuffer(data, number).reshape(shape, order='F' if order else 'C')
        case 'HistoryBuffer', _, {'_log_history': log, '_count_history': count, 'max_length': int(length)}:
            return dict(zip(HISTORY, (log, count, length)))
    return DROPPED


def _number(kind: OpaqueObject) -> str | None:
    """Return numpy's name of the dtype that a placeholder describes; None if it is not a number."""
    match kind.arguments, kind.state:
        case (str(code), *_), (_, str(order), *_) if NUMBERS.fullmatch(order + code):
            return order + code
    return None
