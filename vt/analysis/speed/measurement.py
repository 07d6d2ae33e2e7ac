"""Settings of a benchmark, and its records.

Letters: N batch, H and W height and width of an image, T frames of a clip.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from math import prod
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from vt.checkpoints.files import read_json
from vt.errors import UserError
from vt.ops.compiled import compile_pixels
from vt.ops.token_products import choose_token_library

KINDS = ('inference', 'training')
# Values of Setting.compile: compile only the relations, or only the skinny matrix products of pixels and tokens.
PIXELS = 'pixels'


@dataclass(frozen=True)
class Setting:
    """How models are run.

    Attributes:
        device: name of the device, as in PyTorch.
        dtype: ``'tf32'``: float32 with TensorFloat-32 convolutions and matrix products, as runs on a GPU;
            ``'float32'``: exact products, as runs on a CPU; or the precision of autocast, as with ``--amp``: weights
            are float32, and operators without autocast run as with ``'tf32'``.
        memory_format: memory format of weights and images, ``'channels_last'`` or ``'contiguous'``.
        compile: ``'off'``, ``PIXELS``, or a mode of ``torch.compile``.
        batch_size: N.
        size: H and W of images, or T, H and W of clips.
        fuse_conv_bn: in inference, fold batch normalisations into the preceding convolutions, as for deployment.
        token_products: ``'blas'`` or ``'onednn'``, see :mod:`vt.ops.token_products`.
    """

    device: str = 'cpu'
    dtype: str = 'float32'
    memory_format: str = 'channels_last'
    compile: str = 'off'
    batch_size: int = 8
    size: tuple[int, ...] = (224, 224)
    fuse_conv_bn: bool = False
    token_products: str = 'blas'

    def describe(self) -> str:
        """Describe the setting in one line, for titles."""
        compiled = '' if self.compile == 'off' else f', compiled ({self.compile})'
        fused = ', BN folded' if self.fuse_conv_bn else ''
        onednn = ', token products by oneDNN' if self.token_products == 'onednn' else ''
        size = describe_size(self.size)
        return f'batch {self.batch_size}, {size}, {self.dtype}, {self.memory_format}{compiled}{fused}{onednn}'

    @property
    def tensor_dtype(self) -> torch.dtype:
        """Precision of the operands of matrix products."""
        return torch.float32 if self.dtype == 'tf32' else getattr(torch, self.dtype)

    def autocast(self) -> AbstractContextManager:
        """Return the autocast context of a forward pass."""
        lower = self.tensor_dtype != torch.float32
        dtype = self.tensor_dtype if lower else torch.bfloat16
        return torch.autocast(torch.device(self.device).type, dtype, enabled=lower)

    def choose_products(self) -> None:
        """Set the precision of float32 products and the library of token products for this process."""
        choose_token_library(self.token_products)
        compile_pixels(self.compile == PIXELS)
        tf32 = torch.device(self.device).type == 'cuda' and self.dtype != 'float32'
        torch.set_float32_matmul_precision('high' if tf32 else 'highest')
        torch.backends.cudnn.allow_tf32 = tf32

    def random(self, *shape: int) -> Tensor:
        """Return random images, clips or maps of a shape; only 4-D tensors are in channels_last, as in a run."""
        channels_last = self.memory_format == 'channels_last' and len(shape) == 4
        layout = torch.channels_last if channels_last else torch.contiguous_format
        return torch.randn(shape, device=self.device).contiguous(memory_format=layout)


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


def default_dtype(device: str) -> str:
    """Return the dtype of runs without ``--amp``: ``'tf32'`` on a GPU, ``'float32'`` on a CPU."""
    return 'tf32' if torch.device(device).type == 'cuda' else 'float32'


def parse_size(text: str) -> tuple[int, ...]:
    """Parse a size: ``'224'``, ``'800x1216'`` (height, width) or ``'16x224x224'`` (frames, height, width).

    Raises:
        UserError: the text is not a size.
    """
    numbers = text.split('x')
    if len(numbers) > 3 or not all(number.isdecimal() for number in numbers):
        raise UserError(
            f'--sizes {text} is not a size: write 224 or 800x1216 (height, width) for images, 16x224x224 for clips'
        )
    return tuple(map(int, numbers * 2 if len(numbers) == 1 else numbers))


def describe_size(size: Sequence[int]) -> str:
    """Format a size for :func:`parse_size`."""
    return 'x'.join(map(str, size))


@dataclass
class BenchmarkRecord:
    """The file that ``tools/benchmark.py --out`` writes.

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
    """Read a file of ``tools/benchmark.py --out``.

    Raises:
        MissingFileError: the file does not exist.
        UserError: the file is not such a record.
    """
    record = read_json(path, f'write it first: tools/benchmark.py CONFIG ... --out {path}')
    try:
        return BenchmarkRecord(**record | dict(results=[Measurement(**entry) for entry in record['results']]))
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f'{path} is not a record of tools/benchmark.py --out; write it again') from error
