"""A learned factor of a block's branches that starts at zero."""

import torch
from torch import Tensor, nn


class ReZero(nn.Module):
    """``alpha x``, one alpha, zero at the start (ReZero, equation 3): a block begins as the identity."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x
