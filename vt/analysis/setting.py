"""How a benchmark runs a model.

Letters: N batch, H and W height and width of an image.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor

KINDS = ('inference', 'training')
PARTS = ('whole', 'neck', 'backbone')


@dataclass(frozen=True)
class Setting:
    """How models are run.

    Attributes:
        device: as PyTorch names it.
        dtype: ``'float32'``, or the lower precision of autocast, as ``--amp`` has it: weights stay in float32.
        memory_format: ``'channels_last'`` or ``'contiguous'``, of weights and images.
        compile: ``'off'``, or a mode of ``torch.compile``.
        fuse_conv_bn: in inference, fold each batch normalisation into the convolution before it, as for deployment.
        batch_size: N.
        size: H and W.
    """

    device: str = 'cpu'
    dtype: str = 'float32'
    memory_format: str = 'channels_last'
    compile: str = 'off'
    batch_size: int = 8
    size: tuple[int, int] = (224, 224)
    fuse_conv_bn: bool = False

    def describe(self) -> str:
        """One line for a title."""
        height, width = self.size
        compiled = '' if self.compile == 'off' else f', compiled ({self.compile})'
        fused = ', BN folded' if self.fuse_conv_bn else ''
        return f'batch {self.batch_size}, {height}x{width}, {self.dtype}, {self.memory_format}{compiled}{fused}'

    def autocast(self) -> AbstractContextManager:
        """The context of a forward pass."""
        dtype = torch.bfloat16 if self.dtype == 'float32' else getattr(torch, self.dtype)
        return torch.autocast(torch.device(self.device).type, dtype, enabled=self.dtype != 'float32')

    def random(self, *shape: int) -> Tensor:
        """Random images or maps."""
        layout = getattr(torch, self.memory_format.replace('contiguous', 'contiguous_format'))
        return torch.randn(shape, device=self.device).contiguous(memory_format=layout)
