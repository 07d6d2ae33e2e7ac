"""Settings of a measurement, and its records.

Letters: N batch, H and W height and width of an image, T frames of a clip.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmcv.cnn import fuse_conv_bn
from torch import Tensor, nn

from vt.analysis import speed
from vt.errors import UserError
from vt.files import read_json
from vt.models.optimize import optimize_for

from .peers import Peer

KINDS = ('inference', 'training')


@dataclass(frozen=True)
class Setting(speed.Setting):
    """How models are run, with more choices than users have.

    Attributes:
        memory_format: memory format of weights and images, ``'channels_last'`` or ``'contiguous'``.
        compile: ``'off'`` or a mode of ``torch.compile``.
        fuse_conv_bn: in inference, fold batch normalisations into the preceding convolutions, as for deployment.
        token_products: ``'blas'`` or ``'onednn'``, see :mod:`vt.ops.token_products`.
    """

    memory_format: str = 'channels_last'
    compile: str = 'off'
    fuse_conv_bn: bool = False
    token_products: str = 'blas'

    def describe(self) -> str:
        """Describe the setting in one line, for titles."""
        compiled = '' if self.compile == 'off' else f', compiled ({self.compile})'
        fused = ', BN folded' if self.fuse_conv_bn else ''
        onednn = ', token products by oneDNN' if self.token_products == 'onednn' else ''
        return f'{super().describe()}, {self.memory_format}{compiled}{fused}{onednn}'

    def place(self, model: nn.Module) -> nn.Module:
        """Move a model to the device and choose its implementations; of a peer only the memory format. Return it."""
        library = 'blas' if isinstance(model, Peer) else self.token_products
        channels_last = self.memory_format == 'channels_last'
        return optimize_for(model.to(self.device), channels_last=channels_last, token_products=library)

    def random(self, *shape: int) -> Tensor:
        """Return random images, clips or maps of a shape; only 4-D tensors are in channels_last, as in a run."""
        drawn = super().random(*shape)
        return drawn if self.memory_format == 'channels_last' else drawn.contiguous()

    def forward(self, module: nn.Module) -> Callable[..., Any]:
        """Return the forward pass of a module: folded, compiled, in the precision of the setting."""
        if self.fuse_conv_bn and not module.training:
            module = fuse_conv_bn(copy.deepcopy(module))  # a copy, since training needs the normalisation
        if self.compile == 'off':
            return super().forward(module)
        call = super().forward(torch.compile(module, mode=self.compile))

        def forward(*args: Any, **options: Any) -> Any:
            torch.compiler.cudagraph_mark_step_begin()
            return call(*args, **options)

        return forward


@dataclass(frozen=True, kw_only=True)
class Measurement(Setting):
    """Result for one part of one model, in inference or training, in a setting.

    Attributes:
        model: name of the config or of the other library's model.
        part: ``'whole'``, ``'neck'`` or ``'backbone'``.
        kind: ``'inference'`` or ``'training'``: forward, loss, backward and SGD update for the whole model, forward and
            backward for a part.
        tokens: L, if several numbers of tokens are compared and the model has tokens; otherwise None.
        seconds: time of each step.
        flops: multiply-adds of one image in inference.
        parameters: number of parameters.
        peak_memory: peak memory of a step in bytes; None if it was not measured.
        bound_seconds: roofline of a step, the time of its matrix operators at the machine's ceilings; None if it was
            not measured.
        token_side_seconds: time of each step in modules that process only tokens; None if there are none.
    """

    model: str
    part: str
    kind: str
    tokens: int | None
    seconds: list[float]
    flops: int
    parameters: int
    peak_memory: int | None = None
    bound_seconds: float | None = None
    token_side_seconds: list[float] | None = None

    @property
    def median(self) -> float:
        """Median seconds of a step."""
        return float(np.median(self.seconds))

    @property
    def spread(self) -> float:
        """Interquartile range of the seconds, relative to their median."""
        low, high = np.percentile(self.seconds, (25, 75))
        return float(high - low) / self.median

    @property
    def pixels(self) -> int:
        """Number of pixels of an image, H times W, or of a clip, T times H times W."""
        return prod(self.size)

    @property
    def setting(self) -> Setting:
        """Setting of the measurement."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(Setting)}
        return Setting(**values | dict(size=tuple(self.size)))


def describe_size(size: Sequence[int]) -> str:
    """Format a size as ``--sizes`` takes it."""
    return 'x'.join(map(str, size))


@dataclass
class BenchmarkRecord:
    """The file that ``python -m projects.speed.compare --out`` writes.

    ``environment`` has variables that influence the speed of a CPU, ``settings`` the number of threads and whether the
    allocator keeps freed memory, ``ceilings`` the machine's ceilings while each part, kind and setting was measured.
    """

    command: str
    environment: dict[str, str]
    device: str
    versions: dict[str, str]
    settings: dict
    ceilings: list[dict]
    results: list[Measurement]


def read_record(path: Path) -> BenchmarkRecord:
    """Read a file of ``python -m projects.speed.compare --out``.

    Raises:
        MissingFileError: the file does not exist.
        UserError: the file is not such a record.
    """
    record = read_json(path, f'write it first: python -m projects.speed.compare CONFIG ... --out {path}')
    try:
        return BenchmarkRecord(**record | dict(results=[Measurement(**entry) for entry in record['results']]))
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f'{path} is not a record of projects.speed.compare --out; write it again') from error
