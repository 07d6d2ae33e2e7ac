"""The private names of other packages that VT uses, each with the reason."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

# The public unpickler of Python, in C, allocates as much memory as a file claims to need for its memo.
from pickle import _Unpickler as Unpickler
from threading import Lock
from typing import Any

from mmengine.config import Config
from mmengine.config.utils import MODULE2PACKAGE
from torch import nn

__all__ = ['Unpickler', 'name_classes', 'read_file', 'without_init_log']


_names_of_packages = Lock()


def read_file(path: str) -> Config:
    """Read a config, which may inherit from ``vt::...`` and ``mmseg::...`` under any name of their distributions.

    Only mmengine's table for the process finds such a file: it gets the names while one is read, and only then.
    """
    try:
        return Config.fromfile(path)
    except (AssertionError, ModuleNotFoundError):
        with _names_of_packages:
            before = dict(MODULE2PACKAGE)
            MODULE2PACKAGE.update(mmseg='mmseg', vt='vt')
            try:
                return Config.fromfile(path)
            finally:
                MODULE2PACKAGE.update(before)
                for name in MODULE2PACKAGE.keys() - before.keys():
                    del MODULE2PACKAGE[name]


@contextmanager
def without_init_log(model: nn.Module) -> Iterator[None]:
    """Let ``init_weights`` of mmengine write no line for each tensor within the block.

    It writes them to the current logger of the process, unless a module outside has begun a record of the weights.
    """
    record = {parameter: dict(init_info='', tmp_mean_value=None) for parameter in model.parameters()}
    for part in model.modules():
        part._params_init_info = record
    try:
        yield
    finally:
        for part in model.modules():
            vars(part).pop('_params_init_info', None)


def name_classes(dataset: Any, names: Sequence[str]) -> None:
    """Set the class names of a data set that has none; its public ``metainfo`` is a copy."""
    dataset._metainfo.setdefault('classes', names)
