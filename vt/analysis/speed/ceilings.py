"""What a machine does at best.

FLOPs of models are multiply-adds, as everywhere in this project and in the paper. Rates of machines are given as their
makers do: in FLOP/s, of which a multiply-add is two.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv2d

from .timing import Step

# Columns of tables.
TITLES = dict(
    matmul='matrix product (GFLOP/s)',
    convolution1x1='1x1 convolution (GFLOP/s)',
    convolution3x3='3x3 convolution (GFLOP/s)',
    copy='copy (GB/s)',
)


@dataclass(frozen=True)
class Ceilings:
    """What a device does at best in one precision, each the median of runs.

    Attributes:
        matmul: FLOP/s of a large matrix product; a multiply-add is two.
        convolution1x1: the same of a 1x1 convolution in channels_last.
        convolution3x3: the same of a 3x3 convolution in channels_last.
        copy: bytes/s, read and written, of a copy into memory that was touched before.
    """

    matmul: float
    convolution1x1: float
    convolution3x3: float
    copy: float

    @property
    def convolution(self) -> float:
        """FLOP/s of the faster convolution."""
        return max(self.convolution1x1, self.convolution3x3)


class CeilingMeter:
    """``steps`` that measure the ceilings, by their names, to be run in turn with what is compared to them.

    Each takes some ten milliseconds on two cores of a CPU, about one on a large GPU.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        side, batch = (8192, 32) if device.type == 'cuda' else (1536, 1)

        def tensor(*shape: int) -> Tensor:
            drawn = torch.randn(shape, device=device).to(dtype)
            return drawn.contiguous(memory_format=torch.channels_last) if len(shape) == 4 else drawn

        a, b = tensor(side, side), tensor(side, side)
        x1, w1 = tensor(batch, 512, 112, 112), tensor(512, 512, 1, 1)
        x3, w3 = tensor(batch, 256, 64, 64), tensor(256, 256, 3, 3)
        source = torch.ones(2**25, device=device)  # 128 MiB, more than caches hold
        target = torch.zeros_like(source)
        self.steps: dict[str, Step] = {
            'matmul': lambda: a @ b,
            'convolution1x1': lambda: conv2d(x1, w1),
            'convolution3x3': lambda: conv2d(x3, w3, padding=1),
            'copy': lambda: target.copy_(source),
        }
        self._work = dict(
            matmul=2 * side**3,
            convolution1x1=2 * x1.numel() * 512,
            convolution3x3=2 * x3.numel() * 256 * 9,
            copy=2 * source.numel() * source.itemsize,
        )

    def ceilings(self, times: dict[str, np.ndarray]) -> Ceilings:
        """The rates of the median runs, given seconds of the runs of the steps, maybe among others."""
        return Ceilings(**{name: float(work / np.median(times[name])) for name, work in self._work.items()})
