"""An error that a user can mend is one line: what, where, and what to do."""

import difflib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mmengine.registry import Registry, root

from vt._libraries import importing

WIDTHS_DIFFER = re.compile(r'mat1 and mat2 shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)')
UNKNOWN_TYPE = re.compile(r'(\S+) is not in the (\S+)::(.+?) registry')


@contextmanager
def one_line_errors(where: str, traceback: bool = False) -> Iterator[None]:
    """Turn any error into one line on standard error and exit code 1.

    Args:
        where: what the user was working with, usually the config's path; it begins the line.
        traceback: let the error through, with its whole traceback.
    """
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if traceback:
            raise
        print(f'error: {where}: {describe(error)} (--traceback shows where)', file=sys.stderr)
        sys.exit(1)


def describe(error: Exception) -> str:
    """One line that says what went wrong; a misspelt type names its nearest neighbours."""
    message = ' '.join(str(error.args[0] if len(error.args) == 1 else error).split())
    if isinstance(error, FileNotFoundError) and error.filename:
        return f'there is no {error.filename}: put it there, or set its path (data_root for a data set) in the config'
    widths = WIDTHS_DIFFER.search(message)
    if widths:
        return 'a layer got {} channels where it takes {}: compare in_channels of the head with the backbone'.format(
            *widths.groups()
        )
    if message.startswith('view size is not compatible'):
        return 'a layer needs maps that are contiguous: add --cfg-options speed.channels_last=False'
    unknown = UNKNOWN_TYPE.search(message)
    if unknown:
        return _unknown_type(*unknown.groups())
    named = isinstance(error, (ValueError, FileNotFoundError, RuntimeError)) and message
    return message if named else f'{type(error).__name__}: {message}'


def _unknown_type(name: str, scope: str, kind: str) -> str:
    near = difflib.get_close_matches(name, _known_types(kind, scope), n=3, cutoff=0.6)
    hint = f'did you mean {" or ".join(near)}?' if near else 'is its package in custom_imports, and its prefix there?'
    return f"there is no {kind} type '{name}'; {hint}"


def _known_types(kind: str, scope: str) -> list[str]:
    """Names that a config of ``scope`` can give to a ``kind``, with prefixes where they are needed."""
    registries = [registry for registry in vars(root).values() if isinstance(registry, Registry)]
    registry = next(registry for registry in registries if registry.name == kind)
    with importing():
        for child in list(registry.children.values()):
            child.get('no such part')  # all are imported in the search for it
    names = list(registry.module_dict)
    for child in registry.children.values():
        names += [name if child.scope == scope else f'{child.scope}.{name}' for name in child.module_dict]
    return names
