"""How a benchmark runs a model, and what it records.

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
# What is compiled: the token side's relations alone, and the skinny matrix products of pixels and tokens.
TOKENS, PIXELS = 'tokens', 'pixels'


@dataclass(frozen=True)
class Setting:
    """How models are run.

    Attributes:
        device: as PyTorch names it.
        dtype: ``'tf32'``, float32 as runs have it on a GPU, convolutions and matrix products in TensorFloat-32;
            ``'float32'``, the same with exact products, which is what runs have on a CPU; or the lower precision of
            autocast, as ``--amp`` has it: weights stay in float32, and what autocast leaves in it is as in ``'tf32'``.
        memory_format: ``'channels_last'`` or ``'contiguous'``, of weights and images.
        compile: ``'off'``, ``TOKENS``, ``PIXELS``, or a mode of ``torch.compile``.
        batch_size: N.
        size: H and W; of clips T, H and W.
        fuse_conv_bn: in inference, fold each batch normalisation into the convolution before it, as for deployment.
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
        """One line for a title."""
        compiled = '' if self.compile == 'off' else f', compiled ({self.compile})'
        fused = ', BN folded' if self.fuse_conv_bn else ''
        onednn = ', token products by oneDNN' if self.token_products == 'onednn' else ''
        size = describe_size(self.size)
        return f'batch {self.batch_size}, {size}, {self.dtype}, {self.memory_format}{compiled}{fused}{onednn}'

    @property
    def tensor_dtype(self) -> torch.dtype:
        """Of what matrix products read."""
        return torch.float32 if self.dtype == 'tf32' else getattr(torch, self.dtype)

    def autocast(self) -> AbstractContextManager:
        """The context of a forward pass."""
        lower = self.tensor_dtype != torch.float32
        dtype = self.tensor_dtype if lower else torch.bfloat16
        return torch.autocast(torch.device(self.device).type, dtype, enabled=lower)

    def choose_products(self) -> None:
        """Set for this process whether float32 products are in TensorFloat-32, and who computes those of tokens."""
        choose_token_library(self.token_products)
        compile_pixels(self.compile == PIXELS)
        tf32 = torch.device(self.device).type == 'cuda' and self.dtype != 'float32'
        torch.set_float32_matmul_precision('high' if tf32 else 'highest')
        torch.backends.cudnn.allow_tf32 = tf32

    def random(self, *shape: int) -> Tensor:
        """Random images, clips or maps; as in a run, only 4-D ones are in channels_last."""
        channels_last = self.memory_format == 'channels_last' and len(shape) == 4
        layout = torch.channels_last if channels_last else torch.contiguous_format
        return torch.randn(shape, device=self.device).contiguous(memory_format=layout)


@dataclass(frozen=True, kw_only=True)
class Measurement(Setting):
    """One part of one model, in inference or training, in a setting.

    Attributes:
        model: name of the config or the peer.
        part: ``'whole'``, ``'neck'`` or ``'backbone'``.
        kind: ``'inference'`` or ``'training'``; of a whole model that is forward, loss, backward and SGD's update, of a
            part forward and backward.
        tokens: L, where several were asked for and the model has tokens.
        seconds: of each step.
        flops: multiply-adds of one image in inference.
        peak_memory: bytes at the peak of a step; None where it wasn't asked for.
        bound_seconds: the step's matrix operators at the machine's ceilings; see :func:`roofline.bound_seconds`.
        token_side_seconds: of each step's modules that see tokens alone; None where there are none.
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
        """The interquartile range of the seconds over their median."""
        low, high = np.percentile(self.seconds, (25, 75))
        return float(high - low) / self.median

    @property
    def share(self) -> float:
        """Of the roofline: the bound over the median time."""
        return self.bound_seconds / self.median

    @property
    def pixels(self) -> int:
        """Of one image, H times W, or of one clip, T times H times W."""
        return prod(self.size)

    @property
    def setting(self) -> Setting:
        """How it ran."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(Setting)}
        return Setting(**values | dict(size=tuple(self.size)))


def default_dtype(device: str) -> str:
    """That of runs without ``--amp``: ``'tf32'`` on a GPU, ``'float32'`` on a CPU."""
    return 'tf32' if torch.device(device).type == 'cuda' else 'float32'


def parse_size(text: str) -> tuple[int, ...]:
    """``'224'``, ``'800x1216'`` (height, then width), or ``'16x224x224'`` (frames first).

    Raises:
        UserError: it is neither.
    """
    numbers = text.split('x')
    if len(numbers) > 3 or not all(number.isdecimal() for number in numbers):
        raise UserError(
            f'--sizes {text}: give an image as 224 or as 800x1216, height and then width, or a clip as 16x224x224'
        )
    return tuple(map(int, numbers * 2 if len(numbers) == 1 else numbers))


def describe_size(size: Sequence[int]) -> str:
    """As :func:`parse_size` reads it."""
    return 'x'.join(map(str, size))


@dataclass
class BenchmarkRecord:
    """What ``tools/benchmark.py --out`` writes.

    ``environment`` holds variables that change the time of a CPU, ``settings`` the number of threads and whether the
    allocator keeps what is freed, ``ceilings`` those of each part, kind and setting.
    """

    command: str
    environment: dict[str, str]
    device: str
    versions: dict[str, str]
    settings: dict
    ceilings: list[dict]
    results: list[Measurement]


def read_record(path: Path) -> BenchmarkRecord:
    """Read what ``tools/benchmark.py --out`` wrote.

    Raises:
        MissingFileError: it is not there.
        UserError: it is something else.
    """
    record = read_json(path, f'write it first: tools/benchmark.py CONFIG ... --out {path}')
    try:
        for entry in record['results']:
            entry.pop('seconds_by_operator', None)  # of earlier versions
        return BenchmarkRecord(**record | dict(results=[Measurement(**entry) for entry in record['results']]))
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f'{path} is not what tools/benchmark.py --out writes; write it anew') from error
