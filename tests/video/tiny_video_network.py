"""A small network for clips, to be named by a test's config: one convolution over time and space, and its average."""

from mmengine.model import BaseModule
from mmengine.registry import MODELS
from torch import nn


@MODELS.register_module()
class TinyVideoNetwork(BaseModule):
    def __init__(self, channels=8):
        super().__init__()
        self.convolution = nn.Conv3d(3, channels, (3, 5, 5), stride=(1, 4, 4), padding=(1, 2, 2))

    def forward(self, clips):
        return (self.convolution(clips).relu().mean((2, 3, 4)),)
