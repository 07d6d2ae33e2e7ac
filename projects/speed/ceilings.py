"""Peak rates of a machine, measured.

FLOPs of models are multiply-adds, as in the paper. Rates of machines are in FLOP/s, where a multiply-add counts as two.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv2d

from vt.analysis.speed import Step


@dataclass(frozen=True)
class Ceilings:
    """Peak rates of a device in one precision, each the median of several runs.

    Attributes:
        matmul: FLOP/s of a large matrix product; a multiply-add counts as two.
        convolution1x1: FLOP/s of a 1x1 convolution in channels_last.
        convolution3x3: FLOP/s of a 3x3 convolution in channels_last.
        copy: bytes/s, read plus written, of a copy into memory that was used before.
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
    """Measure the ceilings: ``steps``, by name, are timed in turn with the steps of models.

    Each takes about ten milliseconds on two CPU cores, and one on a large GPU.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        side, batch = (8192, 32) if device.type == 'cuda' else (1536, 1)

        def tensor(*shape: int) -> Tensor:
            drawn = torch.randn(shape, device=device).to(dtype)
            return drawn.contiguous(memory_format=torch.channels_last) if len(shape) == 4 else drawn

        a, b = tensor(side, side), tensor(side, side)
        x1, w1 = tensor(batch, 512, 112, 112), tensor(512, 512, 1, 1)
        x3, w3 = tensor(batch, 256, 64, 64), tensor(256, 256, 3, 3)
        source = torch.ones(2**25, device=device)  # 128 MiB, larger than caches
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
        """Return the rates of the median runs; ``times`` are the seconds of the runs of each step."""
        return Ceilings(**{name: float(work / np.median(times[name])) for name, work in self._work.items()})
