"""Memory layout of linear layers and token-side matrices for oneDNN."""

from torch import Tensor, nn

from vt.ops.token_products import multiply

from .visual_transformers.grouped_linear import GroupedLinear


class Linear(nn.Linear):
    """A linear layer whose product is computed by :func:`vt.ops.token_products.multiply`.

    It has the name of PyTorch's, for it is printed, also in messages.
    """

    def forward(self, x: Tensor) -> Tensor:
        """``(..., in_features)`` to ``(..., out_features)``."""
        return multiply(x, self.weight, self.bias)


def prepare_for_onednn(model: nn.Module) -> None:
    """Let the chosen library of token products compute the linear layers, and lay out token-side matrices for oneDNN.

    Linear layers become :class:`Linear` in place. Token-side matrices are stored with output channels outermost,
    which oneDNN reads fastest; pixel-side matrices, whose transpose is applied, keep their layout. Names, shapes and
    values do not change. Call it before wrapping the model in DDP, whose buckets take over the strides of the weights.
    """
    for part in model.modules():
        if type(part) is nn.Linear:
            part.__class__ = Linear
        elif isinstance(part, GroupedLinear) and not part.pixel_side:
            part.weight.data = part.weight.data.mT.contiguous().mT
