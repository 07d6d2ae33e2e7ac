"""The private names of other packages that VT uses, each with the reason."""

# Python's unpickler. The public one, in C, allocates as much memory as a file claims to need for its memo.
from pickle import _Unpickler as Unpickler

__all__ = ['Unpickler']
