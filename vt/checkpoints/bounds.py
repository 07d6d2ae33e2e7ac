"""Bounds of what a pickle unfolds to, found before anything of it is built.

A pickle is a program. A few bytes of it may ask for all memory, double the work with every step, or claim a tensor that
is larger than the file. Its instructions are followed once without effect, as PyTorch's weights-only reader will follow
them afterwards.
"""

import pickletools
from typing import Any, BinaryIO

from vt.errors import UserError
from vt.untrusted_text import printable

from .calls import CALL, NEEDED, ODD_KEY, Calls, Name, Node, RefusedError, kind_of

LONG = 64  # longer texts are counted in bytes
HELD, NAMED = 2, 100  # steps of a container, and of a name

CONSTANTS = dict(NONE=None, NEWTRUE=True, NEWFALSE=False)
ATOMS = {*CONSTANTS, 'BININT', 'BININT1', 'BININT2', 'LONG1', 'BINFLOAT', 'BINUNICODE', 'SHORT_BINSTRING'}
PUTS, GETS = {'BINPUT', 'LONG_BINPUT'}, {'BINGET', 'LONG_BINGET'}
# How many objects of the stack become a container, or fill the one below them; None for those above the mark.
MAKES = dict(EMPTY_LIST=0, EMPTY_DICT=0, EMPTY_TUPLE=0, TUPLE1=1, TUPLE2=2, TUPLE3=3, TUPLE=None)
FILLS = dict(APPEND=1, APPENDS=None, SETITEM=2, SETITEMS=None)


class Scan(Calls):
    """Follows the pickles of one file, one a call."""

    def __call__(self, stream: bytes | BinaryIO) -> None:
        """Follow one pickle, and stop behind it.

        Raises:
            RefusedError: it asks for what no weights need, or unfolds to too much.
            UserError: it is damaged; other errors may mean that too.
        """
        self.stack, self.marks, self.memo, asked = [], [], {}, set()
        for opcode, argument, _ in pickletools.genops(stream):
            instruction = opcode.name
            self.spend(1)
            if instruction in PUTS:
                self.memo[argument] = self.stack[-1]
            elif instruction in GETS:
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

    def follow(self, instruction: str) -> None:
        """Do what an instruction does to the objects of the stack."""
        if instruction in MAKES:
            self.spend(HELD)
            made = Node(instruction.removeprefix('EMPTY_').rstrip('123').lower(), self.take(MAKES[instruction]))
            self.stack.append(made)
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
            raise UserError('it takes what is not there')
        parts = self.stack[-count:] if count else ()
        del self.stack[len(self.stack) - count :]
        return parts

    def fill(self, parts: list, kind: str) -> None:
        target = self.stack[-1]
        if kind_of(target) != kind:
            raise UserError(f'it fills what is no {kind}')
        for key in parts[::2] if kind == 'dict' else ():
            # Tuples and long numbers can be chosen so that a dict compares each with all others.
            if kind_of(key) not in (None, 'text') or (type(key) is int and abs(key) >> 60):
                self.spend(ODD_KEY * getattr(key, 'size', 1))
        target.parts = target.parts or []
        target.parts += parts
        target.count(parts)

    def build(self, target: Any, state: Any) -> None:
        """Give an object its state; that of a dict of weights are the versions of modules."""
        is_versions = kind_of(target) == kind_of(state) == 'dict' and state.parts[::2] == ['_metadata']
        if kind_of(target) != 'object' and not is_versions:
            raise RefusedError('it changes an object as no weights need it')
        self.spend(CALL, getattr(state, 'text', 0))
        target.count([state])
        self.stack.append(target)
