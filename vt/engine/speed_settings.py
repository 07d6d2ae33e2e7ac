"""The config key ``speed``: what a run sets for its speed by itself, each to be turned off."""

import os
import shutil
from dataclasses import dataclass, fields

import torch
from mmengine.config import Config

from .speed import keep_freed_memory, use_threads


@dataclass(frozen=True)
class SpeedSettings:
    """Settings for speed; a config names only those that differ: ``speed = dict(channels_last=False)``.

    Attributes:
        channels_last: keep weights and images in channels_last, see :func:`vt.engine.speed.to_channels_last`.
        keep_memory: let glibc keep freed memory on a CPU, see :func:`vt.engine.speed.keep_freed_memory`.
        threads: threads of PyTorch's operators on the CPU; ``'auto'`` see :func:`vt.engine.speed.use_threads`.
        cudnn_benchmark: let cuDNN try its convolutions while training, whose images have one size. mmengine's
            ``env_cfg.cudnn_benchmark=True`` does it while testing too.
        compile: ``torch.compile`` the steps of training and of testing; mmengine's key ``compile`` takes its options.
    """

    channels_last: bool = True
    keep_memory: bool = True
    threads: int | str = 'auto'
    cudnn_benchmark: bool = True
    compile: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == 'threads':
                if value != 'auto' and not (type(value) is int and value > 0):
                    raise ValueError(f"speed.threads={value!r} is neither a number of threads nor 'auto'")
            elif not isinstance(value, bool):
                raise ValueError(f'speed.{field.name}={value!r} is neither True nor False')

    @classmethod
    def from_config(cls, cfg: Config) -> 'SpeedSettings':
        """The settings of a config.

        Raises:
            ValueError: a name or a value that isn't known.
        """
        given = cfg.get('speed', {})
        known = [field.name for field in fields(cls)]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f'speed.{unknown[0]} is no setting: there are {", ".join(known)}')
        return cls(**given)

    def set_process(self) -> str:
        """Set allocator and threads of this process, and describe them."""
        if torch.cuda.is_available():
            memory = 'freed memory not kept (GPU)'
        else:
            memory = f'freed memory {"kept" if self.keep_memory and keep_freed_memory() else "not kept"}'
        if self.threads != 'auto':
            torch.set_num_threads(self.threads)
        threads = use_threads() if self.threads == 'auto' else self.threads
        return f'{memory}; {threads} {"thread" if threads == 1 else "threads"}'


def require_compiler() -> None:
    """``torch.compile`` writes C++ for a CPU: say so where nothing can compile it.

    Raises:
        ValueError: there is no compiler.
    """
    compiler = os.environ.get('CXX', 'g++')
    if not torch.cuda.is_available() and shutil.which(compiler) is None:
        raise ValueError(
            f'compile needs a C++ compiler on a CPU, and there is no {compiler}: install it, name another one in the '
            'environment variable CXX, or leave --compile out'
        )
