"""Import OpenMMLab's packages on demand and without their messages.

Their first import prints which optional packages are missing and warns that mmcv has no compiled operators. VT does not
need them.
"""

import ast
import contextlib
import importlib
import io
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def importing(*modules: str) -> Iterator[None]:
    """Suppress messages and warnings during imports inside the block, of ``modules`` if they are not yet imported."""
    if modules and all(module in sys.modules for module in modules):
        yield
        return
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter('ignore')
        yield


def import_library(scope: str) -> None:
    """Import the models and data sets of an OpenMMLab package, if it has any."""
    modules = [f'{scope}.{part}' for part in ('models', 'datasets')] if scope in ('mmpretrain', 'mmseg') else []
    with importing(*modules, __name__):
        for module in modules:
            importlib.import_module(module)


def import_on_demand(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose names are imported at their first access.

    The imports in its ``__init__.py`` under ``if TYPE_CHECKING``, which are not run, give the location of each name.
    """
    locations = exported(package, Path(file).parent)

    def __getattr__(name: str) -> Any:
        if name not in locations:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        with importing(locations[name].partition(':')[0]):
            return pkgutil.resolve_name(locations[name])

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *locations})

    return __getattr__, __dir__


def exported(package: str, folder: Path) -> dict[str, str]:
    """Return the names that a package's ``__init__.py`` imports from modules of VT, each with its ``'module:name'``.

    The file is parsed, not run. ``import *`` means all exports of the other package. Modules whose names begin with an
    underscore export nothing.
    """
    locations = {}
    for node in ast.walk(ast.parse((folder / '__init__.py').read_text(encoding='utf-8'))):
        if not isinstance(node, ast.ImportFrom) or (node.module or '').rpartition('.')[2].startswith('_'):
            continue
        if not node.level:  # of another package
            if node.module and node.module.startswith('vt.'):
                locations |= {alias.name: f'{node.module}:{alias.name}' for alias in node.names}
            continue
        for alias in node.names:
            if node.module is None:
                locations[alias.name] = f'{package}.{alias.name}'
            elif alias.name == '*':
                locations |= exported(f'{package}.{node.module}', folder / node.module)
            else:
                locations[alias.name] = f'{package}.{node.module}:{alias.name}'
    return locations
