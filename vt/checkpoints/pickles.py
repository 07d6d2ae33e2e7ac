"""Names in a pickle: a file that names more than weights need is refused before PyTorch reads it, weights-only."""

import pickletools
from typing import BinaryIO

import torch

from vt.errors import UserError
from vt.untrusted_text import printable

from .plain import PLACEHOLDERS

FLAG = '--trust-checkpoint'
KINDS = ('Double', 'Float', 'Half', 'BFloat16', 'Long', 'Int', 'Short', 'Char', 'Byte', 'Bool')
STORAGES = {f'{module}.{kind}Storage' for module in ('torch', 'torch.cuda') for kind in KINDS}
STORAGES |= {'torch.ComplexFloatStorage', 'torch.ComplexDoubleStorage', 'torch.storage.UntypedStorage'}
DTYPES = {str(dtype) for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)}
TENSORS = {f'torch._utils._rebuild_{name}' for name in ('tensor', 'tensor_v2', 'tensor_v3', 'parameter')}
TENSORS |= {'torch.Tensor', 'torch._tensor._rebuild_from_type_v2'}  # with attributes, which are dropped
CONTAINERS = {'collections.OrderedDict', 'collections.Counter', 'builtins.set', '_codecs.encode'}
NEEDED = {*TENSORS, *STORAGES, *DTYPES, *CONTAINERS, 'torch.Size', 'torch.device'} | {name for _, name in PLACEHOLDERS}
# Instructions of pickletools that PyTorch's weights-only reader has.
PLAIN = {'PROTO', 'STOP', 'MARK', 'NONE', 'NEWTRUE', 'NEWFALSE', 'BININT', 'BININT1', 'BININT2', 'LONG1', 'BINFLOAT'}
PLAIN |= {'BINUNICODE', 'SHORT_BINSTRING', 'EMPTY_LIST', 'EMPTY_DICT', 'EMPTY_SET', 'EMPTY_TUPLE', 'TUPLE', 'TUPLE1'}
PLAIN |= {'TUPLE2', 'TUPLE3', 'APPEND', 'APPENDS', 'SETITEM', 'SETITEMS', 'BINPUT', 'LONG_BINPUT', 'BINGET'}
PLAIN |= {'LONG_BINGET', 'GLOBAL', 'REDUCE', 'NEWOBJ', 'BUILD', 'BINPERSID'}


class RefusedError(UserError):
    """A complete file that asks for more than weights need.

    Attributes:
        reason: message without the name of the file.
    """

    reason = ''


def refused(path: object, reason: str) -> RefusedError:
    """Return the error of a file that only a trusted person may have written."""
    advice = 'read it within vt.checkpoints.loading.weights_only(unless=True), or to the command of a tool add'
    error = RefusedError(f'{path} is not loaded: {reason}; if you trust whoever wrote it, {advice} {FLAG}')
    error.reason = reason
    return error


def check_names(path: object, stream: bytes | BinaryIO) -> None:
    """Read the names in a pickle up to its end, without building anything.

    Raises:
        RefusedError: it names a function or class that weights do not need, or has instructions of other pickles.
    """
    named, unknown = set(), False
    for opcode, argument, _ in pickletools.genops(stream):
        unknown |= opcode.name not in PLAIN
        if opcode.name in ('GLOBAL', 'INST'):
            named.add(str(argument).replace(' ', '.').replace('__builtin__.', 'builtins.'))
    asked = printable(', '.join(sorted(named - NEEDED)), 300)
    if unknown or asked:
        what = f'{asked}, which no weights need and which may run code' if asked else 'more than tensors and plain data'
        raise refused(path, f'it asks for {what}')
