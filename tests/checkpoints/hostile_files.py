"""Files that look like checkpoints, each of which makes a file ``marker`` when what it asks for is run.

A kind is a function of the path to write and of the marker's.
"""

import importlib
import io
import os
import pickle
import shlex
import tarfile
import warnings

import numpy as np
import torch
import torch.jit.unsupported_tensor_ops
import torch.utils.collect_env
from mmengine.config import Config
from mmengine.logging import HistoryBuffer
from torch import nn
from torch._tensor import _rebuild_from_type_v2


class Call:
    """A call that unpickling makes, and that of ``__setstate__`` of what it gives."""

    def __init__(self, function, *arguments, state=None):
        self.reduced = (function, arguments, state)

    def __reduce__(self):
        return self.reduced


def python_that_makes(marker):
    return f'open({str(marker)!r}, "w").close()'


def globals_of(function, name):
    """An object that a Python function's module knows, by attributes and calls alone."""
    known = Call(getattr, function, '__globals__')
    kind = Call(getattr, known, '__class__')
    builtins = Call(_rebuild_from_type_v2, Call(getattr, known, 'get'), kind, ('__builtins__',), {})
    get = Call(getattr, builtins, 'get')
    return Call(_rebuild_from_type_v2, get, Call(getattr, get, '__class__'), (name,), {})


def getattr_chain(marker):
    """What mmengine's own list of safe globals lets through: ``getattr``, and PyTorch's call of any function."""
    execute = globals_of(Call(getattr, HistoryBuffer, 'min'), 'exec')
    return Call(_rebuild_from_type_v2, execute, Call(getattr, execute, '__class__'), (python_that_makes(marker),), {})


def calls(marker):
    """What a pickle holds, by kind."""
    python, command = python_that_makes(marker), f'touch {shlex.quote(str(marker))}'
    execute = Call(exec, python)
    system = Call(getattr, Call(importlib.import_module, 'os'), 'system')
    return {
        'os.system': Call(os.system, command),
        'eval': Call(eval, python),
        'exec': execute,
        'open': Call(open, str(marker), 'w'),
        'map over os.system': Call(next, Call(map, os.system, [command])),
        'getattr of a module': Call(next, Call(map, system, [command])),
        'getattr chain': getattr_chain(marker),
        'any function by _rebuild_from_type_v2': Call(_rebuild_from_type_v2, os.system, int, (command,), {}),
        'torch.utils.collect_env.run': Call(torch.utils.collect_env.run, command),
        'torch execWrapper': Call(torch.jit.unsupported_tensor_ops.execWrapper, python, {}, {}),
        'nested torch.load': Call(torch.storage._load_from_bytes, saved(execute)),
        'numpy array of objects': np.array([execute], dtype=object),
        'numpy scalar of an object': Call(np._core.multiarray.scalar, np.dtype('O'), execute),
        'Config.fromstring': Call(Config.fromstring, python, '.py'),
        'state of a Config': dict(
            a=Config(dict(a=1)), b=Call(object.__new__, Config, state=(execute, None, None, None, None))
        ),
        'state of a module': dict(a=nn.Linear(1, 1), b=execute),
        'the key of a dict': {Call(hash, execute): 1},
        'a history with methods': history_with(execute),
    }


def history_with(method):
    history = HistoryBuffer([1.0], [1])
    history._statistics_methods = dict(mean=method)
    return history


def checkpoint_with(content):
    """A checkpoint as mmengine writes it, with something more in it."""
    return dict(
        meta=dict(epoch=1, iter=2, dataset_meta=dict(more=content)),
        state_dict=dict(weight=torch.zeros(2)),
        message_hub=dict(log_scalars={}, runtime_info={}, resumed_keys={}),
    )


def saved(content, **options):
    file = io.BytesIO()
    torch.save(content, file, **options)
    return file.getvalue()


def in_checkpoint(kind, **options):
    return lambda path, marker: path.write_bytes(saved(checkpoint_with(calls(marker)[kind]), **options))


def plain_pickle(path, marker):
    path.write_bytes(pickle.dumps(checkpoint_with(Call(exec, python_that_makes(marker)))))


def names_of_python_2(path, marker):
    """``__builtin__`` and ``posix``, which readers translate."""
    python = python_that_makes(marker).encode()
    path.write_bytes(b'\x80\x02c__builtin__\neval\nX' + len(python).to_bytes(4, 'little') + python + b'\x85R.')


def legacy_tar(path, marker):
    """The format of PyTorch 0.1: pickles in a tar archive."""
    with tarfile.open(path, 'w', format=tarfile.PAX_FORMAT) as archive:
        call = pickle.dumps(Call(exec, python_that_makes(marker)))
        parts = dict(storages=pickle.dumps(0) + pickle.dumps([]), tensors=pickle.dumps(0), pickle=call)
        for name, content in parts.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


class Program(nn.Module):
    """It is run when it is read, and can write files."""

    def __init__(self, path: str):
        super().__init__()
        self.path = path

    @torch.jit.export
    def __getstate__(self):
        return self.path, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[str, bool]):
        self.path = state[0]
        self.training = state[1]
        torch.save(torch.zeros(1), self.path)

    def forward(self, x):
        return x


def torchscript(path, marker):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # TorchScript is deprecated
        torch.jit.script(Program(str(marker))).save(str(path))


BEFORE = dict(_use_new_zipfile_serialization=False)
FILES = {
    **{kind: in_checkpoint(kind) for kind in calls('')},
    **{f'pickle protocol {number}': in_checkpoint('exec', pickle_protocol=number) for number in (0, 1, 3, 4, 5)},
    'format before the archive': in_checkpoint('exec', **BEFORE),
    'format before the archive, os.system': in_checkpoint('os.system', **BEFORE),
    'plain pickle': plain_pickle,
    'names of Python 2': names_of_python_2,
    'legacy tar': legacy_tar,
    'TorchScript': torchscript,
}
