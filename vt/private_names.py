"""Private names of other packages that VT uses, each with the reason."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

# The public unpickler of Python, in C, allocates as much memory as a file claims to need for its memo.
from pickle import _Unpickler as Unpickler
from threading import Lock
from typing import Any

from mmengine.config import Config
from mmengine.config.utils import MODULE2PACKAGE
from torch import nn

# Initialisers of mmengine look for it among the direct bases of a layer.
from torch.nn.modules.batchnorm import _BatchNorm as BatchNorm
from torch.nn.modules.module import _has_any_global_hook

__all__ = [
    'BatchNorm',
    'Unpickler',
    'has_hooks',
    'name_classes',
    'read_file',
    'serialize',
    'set_start',
    'without_init_log',
]


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
        vars(part)['_params_init_info'] = record
    try:
        yield
    finally:
        for part in model.modules():
            vars(part).pop('_params_init_info', None)


def name_classes(dataset: Any, names: Sequence[str]) -> None:
    """Set the class names of a data set that has none; its public ``metainfo`` is a copy."""
    dataset._metainfo.setdefault('classes', names)


def serialize(dataset: Any) -> None:
    """Serialise the samples of a data set of mmengine that was loaded without it: mmengine does it when it loads."""
    dataset.data_bytes, dataset.data_address = dataset._serialize_data()
    dataset.serialize_data = True


def set_start(runner: Any, resumes: bool, path: str | None) -> None:
    """Set the checkpoint with which a runner of mmengine begins, an argument of its constructor alone."""
    runner._resume, runner._load_from = resumes, path


def has_hooks(part: nn.Module) -> bool:
    """Whether calls of a module, or of all modules, have hooks, for which PyTorch has only private names."""
    own = part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks
    return bool(own) or _has_any_global_hook()
