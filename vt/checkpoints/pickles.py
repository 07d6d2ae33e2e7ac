"""Scan a pickle before it is loaded: which functions it calls, and how much memory and time it needs.

A pickle is a program. A few bytes may allocate all memory, double the work with every step, or describe a tensor that
is larger than the file. The scan follows the instructions as PyTorch's weights-only reader would, without building
anything. A call is compared with what weights need, and gives a :class:`Node` with the size of the object.
"""

import math
import pickletools
from typing import Any, BinaryIO

import torch

from vt.errors import UserError
from vt.untrusted_text import printable

from .plain import IGNORED, NAMES

MAX_STEPS = 2_000_000  # plus one per 256 bytes; a tensor needs about 80 steps of about a microsecond each
MAX_DEPTH = 100
MAX_SHARING, MAX_TEXT = 32, 4  # maximum size of tensors and strings relative to the file; layers may share weights
SLACK = 16 << 20  # bytes that tensors and strings may always take
LONG = 64  # the bytes of longer strings are counted
# Steps of a container, a name, a call, and a key that is neither a string nor a small number; arguments per step.
HELD, NAMED, CALL, ODD_KEY, PARTS = 2, 100, 8, 300, 16

KINDS = dict(Double=8, Float=4, Half=2, BFloat16=2, Long=8, Int=4, Short=2, Char=1, Byte=1, Bool=1)
KINDS |= dict(ComplexFloat=8, ComplexDouble=16)
STORAGES = {f'{module}.{kind}Storage': size for module in ('torch', 'torch.cuda') for kind, size in KINDS.items()}
STORAGES['torch.storage.UntypedStorage'] = 1
DTYPES = {str(dtype): dtype.itemsize for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)}
TENSORS = {f'torch._utils._rebuild_tensor{version}' for version in ('', '_v2', '_v3')}
PARAMETER, ENCODE = 'torch._utils._rebuild_parameter', '_codecs.encode'
TYPED = 'torch._tensor._rebuild_from_type_v2'  # arguments: function, class, arguments of the function, attributes
DICTS = {'collections.OrderedDict', 'collections.Counter', 'builtins.set'}
OBJECTS = {'torch.Size', 'torch.device', *NAMES}
NEEDED = {*TENSORS, PARAMETER, TYPED, ENCODE, *DICTS, *OBJECTS, *IGNORED, *STORAGES, *DTYPES, 'torch.Tensor'}

CONSTANTS = dict(NONE=None, NEWTRUE=True, NEWFALSE=False)
ATOMS = {*CONSTANTS, 'BININT', 'BININT1', 'BININT2', 'LONG1', 'BINFLOAT', 'BINUNICODE', 'SHORT_BINSTRING'}
# Number of objects on the stack that become a container, or are added to one; None for all above the mark.
MAKES = dict(EMPTY_LIST=0, EMPTY_DICT=0, EMPTY_TUPLE=0, TUPLE1=1, TUPLE2=2, TUPLE3=3, TUPLE=None)
FILLS = dict(APPEND=1, APPENDS=None, SETITEM=2, SETITEMS=None)


class RefusedError(UserError):
    """A file needs too much memory or time, or asks for more than weights need.

    Attributes:
        asks_more: the file is complete, and names functions or classes that weights do not need.
    """

    asks_more = False


class Name(str):
    """Name of a function or class in a pickle."""

    __slots__ = ()


class Node:
    """Object that a pickle makes.

    Attributes:
        kind: list, tuple, dict, options (of :data:`IGNORED`), text, tensor, storage, bytes, or object for everything
            else.
        parts: its items; for a storage, its bytes and those of an element.
        depth: depth of nesting.
        size, text: number of objects and bytes of long strings in it, counted each time they occur.
        is_part: whether it is an item of another object.
    """

    __slots__ = ('depth', 'is_part', 'kind', 'parts', 'size', 'text')

    def __init__(self, kind: str, parts: list | tuple = (), text: int = 0) -> None:
        self.kind, self.parts, self.depth, self.size, self.text, self.is_part = kind, parts, 0, 1, text, False
        self.count(parts)

    def count(self, parts: list | tuple) -> None:
        """Add the sizes of new items."""
        for part in parts:
            if type(part) is Node:
                part.is_part, self.depth = True, max(self.depth, part.depth + 1)
                self.size, self.text = self.size + part.size, self.text + part.text
            else:
                self.size += 1
        if self.depth > MAX_DEPTH:
            raise RefusedError(f'its objects are nested more than {MAX_DEPTH} deep')
        if self.is_part:  # possibly of itself
            raise RefusedError('it changes an object that is already part of another one')


def kind_of(value: Any) -> str | None:
    return value.kind if type(value) is Node else None


class Scan:
    """Scanner of the pickles of one file, one per call.

    Args:
        size: bytes of the file.
        records: bytes of each storage by name in an archive; None if storages follow the pickles.
    """

    def __init__(self, size: int, records: dict[str, int] | None = None) -> None:
        self.size, self.records, self.is_archive = size, records or {}, records is not None
        self.steps = self.text = self.claimed = 0

    def __call__(self, stream: bytes | BinaryIO) -> None:
        """Scan one pickle, and stop after it.

        Raises:
            RefusedError: it asks for more than weights need, or needs too much memory or time.
            UserError: it is damaged; other errors may mean the same.
        """
        self.stack, self.marks, self.memo, asked = [], [], {}, set()
        for opcode, argument, _ in pickletools.genops(stream):
            instruction = opcode.name
            self.spend(1)
            if instruction in ('BINPUT', 'LONG_BINPUT'):
                self.memo[argument] = self.stack[-1]
            elif instruction in ('BINGET', 'LONG_BINGET'):
                self.stack.append(self.memo[argument])
            elif instruction in ATOMS:
                is_long = type(argument) is str and len(argument) > LONG
                self.stack.append(Node('text', text=len(argument)) if is_long else CONSTANTS.get(instruction, argument))
            elif instruction == 'GLOBAL':
                self.stack.append(name := Name(str(argument).replace(' ', '.').replace('__builtin__.', 'builtins.')))
                asked |= {str(name)} - NEEDED
                self.spend(NAMED)
            elif instruction != 'STOP':
                self.follow(instruction)
        root = self.stack.pop()
        self.spend(getattr(root, 'size', 1), getattr(root, 'text', 0))
        if asked:
            names, damaged = printable(', '.join(sorted(asked)), 300), '' if self.is_archive else ' (or is damaged)'
            refused = RefusedError(f'it asks for {names}, which no weights need and which may run code{damaged}')
            refused.asks_more = self.is_archive
            raise refused

    def spend(self, steps: int, text: int = 0) -> None:
        self.steps, self.text = self.steps + steps, self.text + text
        if self.steps > (most := MAX_STEPS + self.size // 256):
            raise RefusedError(f'it has {self.size:,} bytes and takes more than {most:,} steps to read')
        if self.text > (most := MAX_TEXT * self.size + SLACK):
            raise RefusedError(f'it has {self.size:,} bytes, and its strings expand to more than {most:,}')

    def follow(self, instruction: str) -> None:
        """Apply an instruction to the stack."""
        if instruction in MAKES:
            self.spend(HELD)
            made = Node(instruction.removeprefix('EMPTY_').rstrip('123').lower(), self.take(MAKES[instruction]))
            self.stack.append(made)  # ``take`` may have replaced the stack
        elif instruction in FILLS:
            self.fill(self.take(FILLS[instruction]), 'list' if instruction.startswith('APPEND') else 'dict')
        elif instruction == 'MARK':
            self.spend(HELD)
            self.marks.append(self.stack)
            self.stack = []
        elif instruction in ('REDUCE', 'NEWOBJ'):
            self.stack.append(self.call(*self.take(2)))
        elif instruction == 'BUILD':
            self.build(*self.take(2))
        elif instruction == 'BINPERSID':
            self.stack.append(self.storage(self.stack.pop()))
        elif instruction != 'PROTO':
            raise RefusedError('it asks for more than tensors, numbers and plain Python (or is damaged)')

    def take(self, count: int | None) -> list | tuple:
        if count is None:
            parts, self.stack = self.stack, self.marks.pop()
            return parts
        if count > len(self.stack):
            raise UserError('it uses objects that do not exist')
        parts = self.stack[-count:] if count else ()
        del self.stack[len(self.stack) - count :]
        return parts

    def fill(self, parts: list, kind: str) -> None:
        target = self.stack[-1]
        if kind_of(target) != kind and (kind, kind_of(target)) != ('dict', 'options'):
            raise UserError(f'it adds items to something that is not a {kind}')
        for key in parts[::2] if kind == 'dict' else ():
            # Tuples and large numbers can be chosen so that all have the same hash.
            if kind_of(key) not in (None, 'text') or (type(key) is int and abs(key) >> 60):
                self.spend(ODD_KEY * getattr(key, 'size', 1))
        target.parts = target.parts or []
        target.parts += parts
        target.count(parts)

    def build(self, target: Any, state: Any) -> None:
        """Set the state of an object; of a dict of weights and of options only the versions of modules are read."""
        kind, is_dict = kind_of(target), kind_of(state) in ('dict', 'options')
        is_versions = is_dict and state.parts[::2] == ['_metadata']
        if not dict(object=True, options=is_dict, dict=is_versions).get(kind):
            raise RefusedError('it changes an object in a way that weights do not need')
        self.spend(CALL, getattr(state, 'text', 0))
        if kind == 'object' or is_versions:
            target.count([state])
        self.stack.append(target)

    def call(self, function: Any, arguments: Any) -> Node:
        if type(function) is not Name or kind_of(arguments) != 'tuple':
            raise UserError('it calls something that is not a function')
        self.spend(CALL + arguments.size // PARTS, arguments.text)
        name, parts = str(function), arguments.parts
        hooks = parts[5:6] if name in TENSORS else parts[2:]
        is_bare = all(getattr(hook, 'size', 0) == 1 for hook in hooks)
        if name in TENSORS and is_bare:
            return self.tensor(*parts)
        if name == PARAMETER and is_bare and kind_of(parts[0]) == 'tensor':
            return parts[0]
        if name == TYPED and len(parts) == 4 and _is_sharded(*parts):
            return self.call(parts[0], parts[2])
        if name == ENCODE and parts[1:] == ['latin1']:
            return Node('bytes', text=getattr(parts[0], 'text', 0) or len(parts[0]))
        if name in IGNORED:
            return Node('options')
        if name in DICTS and [kind_of(part) for part in parts] in ([], ['list'], ['dict']):
            self.spend(ODD_KEY * (arguments.size - 1))
            return Node('dict', [*parts[0].parts] if parts else ())
        if name in NEEDED and name not in OBJECTS:
            raise RefusedError(f'it calls {name} in a way that weights do not need')
        return Node('object', parts)

    def storage(self, described: Any) -> Node:
        """Return a storage after comparing its size with that in the archive."""
        match getattr(described, 'parts', ()):
            case ['storage', Name() as name, str(key), _, int(count), *view] if name in STORAGES and not any(view):
                held = count * STORAGES[name]
            case _:
                raise RefusedError('it refers to objects that are not storages')
        known = self.records.get(key) if self.is_archive else self.records.setdefault(key, held)
        if known != held or held < 0 or not key.isascii():
            raise UserError(f'it gives storage {printable(key, 40)} a wrong size, {held:,} bytes')
        self.spend(CALL)
        return Node('storage', (held, STORAGES[name]))

    def tensor(self, storage: Node, offset: int, size: Node, stride: Node, *more: Any) -> Node:
        """Return a tensor after checking that it fits its storage; ``more``: requires_grad, hooks, optional dtype."""
        (held, itemsize), numbers = storage.parts, [offset, *size.parts, *stride.parts]
        if storage.kind != 'storage' or len(numbers) > MAX_DEPTH or {*map(type, numbers)} != {int} or min(numbers) < 0:
            raise UserError('one of its tensors has an invalid size')
        itemsize = DTYPES[more[2]] if len(more) > 2 and type(more[2]) is Name else itemsize
        steps = sum((count - 1) * step for count, step in zip(size.parts, stride.parts, strict=True))
        needed, claimed = (offset + steps + 1) * itemsize, math.prod(size.parts) * itemsize
        if claimed and needed > held:
            raise UserError(f'one of its tensors needs {needed:,} bytes, but its storage has {held:,}')
        self.claimed += claimed
        if self.claimed > MAX_SHARING * self.size + SLACK:
            raise RefusedError(f'it has {self.size:,} bytes and its tensors would take {self.claimed:,} bytes')
        return Node('tensor')


def _is_sharded(make: Any, kind: Any, arguments: Any, state: Any) -> bool:
    """Return whether a tensor with attributes is one that FSDP writes, whose attributes are all booleans."""
    is_tensor = type(make) is Name and make in TENSORS and type(kind) is Name and kind == 'torch.Tensor'
    return is_tensor and kind_of(state) == 'dict' and all(type(value) is bool for value in state.parts[1::2])
