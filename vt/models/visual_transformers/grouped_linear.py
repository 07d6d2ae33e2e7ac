"""The matrices of the paper (section 3), linear layers without bias; they multiply from the right.

Tokenizers: W_{T->R} ``(C_T, C)``. Transformer: K and Q ``(C_T, d)``, F1 and F2 ``(C_T, C_T)``. Projector: W_Q
``(C, C)``, W_K ``(C_T, C)``. Where C_T differs from C, W_V is ``(C, C_T)`` in a tokenizer, ``(C_T, C)`` in a projector.

Letters: C map channels, C_T token channels, d channels of queries and keys.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from vt.models.checks import require_divisible


class GroupedLinear(nn.Module):
    """``y = x W`` with a block-diagonal W, like a grouped 1x1 convolution; one group is a matrix of the paper.

    :meth:`transposed` applies the transpose, which moves a pixel-side matrix to the token side.

    The paper gives no initialisation. Entries are drawn with standard deviation ``gain / sqrt(in_channels / groups)``,
    which for ``gain=1`` (LeCun initialisation) preserves the scale of a token.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        groups: number of blocks; parameters and cost shrink by this factor.
        gain: factor on the initial standard deviation.
        pixel_side: W is a matrix that the equations apply to pixels; only its transpose is applied, to tokens.

    Raises:
        UserError: ``groups`` does not divide the channels.
    """

    multiply = staticmethod(linear)  # of one group; vt.models.optimize_for chooses a faster library

    def __init__(
        self, in_channels: int, out_channels: int, groups: int = 1, gain: float = 1.0, pixel_side: bool = False
    ) -> None:
        super().__init__()
        require_divisible('GroupedLinear', 'in_channels', in_channels, 'groups', groups)
        require_divisible('GroupedLinear', 'out_channels', out_channels, 'groups', groups)
        self.groups = groups
        self.gain = gain
        self.pixel_side = pixel_side
        self.weight = nn.Parameter(torch.empty(groups, in_channels // groups, out_channels // groups))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the weight."""
        nn.init.normal_(self.weight, std=self.gain * self.weight.shape[1] ** -0.5)

    @torch.no_grad()
    def set_identity(self, factor: float) -> None:
        """Set W to ``factor`` times the identity; input and output channels must be equal."""
        self.weight.copy_(factor * torch.eye(self.weight.shape[1]).expand_as(self.weight))

    def forward(self, x: Tensor) -> Tensor:
        """``(..., in_channels)`` to ``(..., out_channels)``."""
        if self.groups == 1:  # one matrix product is faster than a batch of one
            return self.multiply(x, self._only_matrix().T)
        return multiply_groups(x, self.weight)

    def transposed(self, y: Tensor) -> Tensor:
        """``y W^T``: ``(..., out_channels)`` to ``(..., in_channels)``."""
        if self.groups == 1:
            return self.multiply(y, self._only_matrix())
        return multiply_groups(y, self.weight.mT)

    def dense(self) -> Tensor:
        """Return W as a dense matrix, ``(in_channels, out_channels)``, zero outside the blocks."""
        return torch.block_diag(*self.weight)

    def _only_matrix(self) -> Tensor:
        """W of a single group as a view; its gradient gets the strides of the weight, which avoids a copy."""
        if self.weight.is_contiguous():
            return self.weight.squeeze(0)
        return self.weight.mT.squeeze(0).T

    def extra_repr(self) -> str:
        groups, inputs, outputs = self.weight.shape
        return f'{groups * inputs}, {groups * outputs}, groups={groups}'


def multiply_groups(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply ``(..., g * in)`` by a block-diagonal matrix with g blocks ``(g, in, out)``, to ``(..., g * out)``."""
    groups = x.reshape(-1, *weight.shape[:2]).transpose(0, 1)  # g, rows, in; without a copy
    return torch.bmm(groups, weight).transpose(0, 1).reshape(*x.shape[:-1], weight.shape[0] * weight.shape[2])
