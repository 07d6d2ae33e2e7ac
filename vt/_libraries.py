"""Import OpenMMLab's packages on demand and without their messages.

Their first import prints which optional packages are missing and warns that mmcv has no compiled operators. VT does not
need them.
"""

import ast
import atexit
import contextlib
import gc
import importlib
import io
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Suppress messages, warnings and garbage collection during imports inside the block."""
    collects = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter('ignore')
            yield
    finally:
        if collects:
            gc.enable()


def import_library(scope: str) -> None:
    """Import the models and data sets of an OpenMMLab package, if it has any.

    The garbage collector then ignores the imported objects: searching these hundreds of thousands of objects took a
    fifth of the time until the first iteration.
    """
    if scope in ('mmpretrain', 'mmseg'):
        with importing():
            for part in ('models', 'datasets'):
                importlib.import_module(f'{scope}.{part}')
    import torch  # `import vt` is without it

    gc.freeze()
    if torch.__version__ >= '2.15':
        atexit.register(gc.unfreeze)  # a second at the exit, without which Triton 3.9 reports leaks


def import_on_demand(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose names are imported at their first access.

    The imports in its ``__init__.py`` under ``if TYPE_CHECKING``, which are not run, give the location of each name.
    """
    locations = exported(package, Path(file).parent)

    def __getattr__(name: str) -> Any:
        if name not in locations:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        with importing():
            return pkgutil.resolve_name(locations[name])

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *locations})

    return __getattr__, __dir__


def exported(package: str, folder: Path) -> dict[str, str]:
    """Return the names that a package's ``__init__.py`` imports from its own modules, each with its ``'module:name'``.

    The file is parsed, not run. ``import *`` means all exports of the other package. Modules whose names begin with an
    underscore export nothing.
    """
    locations = {}
    for node in ast.walk(ast.parse((folder / '__init__.py').read_text(encoding='utf-8'))):
        if not isinstance(node, ast.ImportFrom) or node.level != 1 or (node.module or '').startswith('_'):
            continue
        for alias in node.names:
            if node.module is None:
                locations[alias.name] = f'{package}.{alias.name}'
            elif alias.name == '*':
                locations |= exported(f'{package}.{node.module}', folder / node.module)
            else:
                locations[alias.name] = f'{package}.{node.module}:{alias.name}'
    return locations
