"""TokenLearner: spatial attention maps that a small network makes of each pixel (Ryoo et al., NeurIPS 2021).

Letters: N batch, C map channels, H and W map size, P = H * W, L tokens, C_T token channels.
"""

from torch import Tensor, nn

from vt.ops.maps import to_pixels
from vt.registry import MODELS

from .base import Tokenizer


@MODELS.register_module()
class TokenLearner(Tokenizer):
    """``A = softmax over HW of MLP(norm(X))``, ``T = A^T X`` (section 2.1, as version 1.1 of the authors' code has it).

    VT's filter tokenizer has one matrix where this has an MLP, whose hidden layer sees all channels of a pixel.

    Args:
        in_channels, token_channels, num_tokens, groups, norm_cfg, dropout: as in :class:`Tokenizer`.
        hidden_channels: of the MLP.
    """

    def __init__(
        self, in_channels: int, token_channels: int, num_tokens: int = 8, hidden_channels: int = 64, **kwargs
    ) -> None:
        super().__init__(in_channels, token_channels, num_tokens, **kwargs)
        self.maps = pixel_maps(in_channels, hidden_channels, num_tokens)

    def pool(self, x: Tensor, tokens: Tensor | None) -> Tensor:
        x = to_pixels(x)  # N, P, C
        return self.maps(x).softmax(dim=1).transpose(1, 2) @ x

    def attention(self, x: Tensor, tokens: Tensor | None = None) -> Tensor:
        """Where each token looks, ``(N, 1, L, H, W)``, for the same arguments as the forward pass."""
        return self.maps(to_pixels(x)).softmax(dim=1).transpose(1, 2).unflatten(-1, x.shape[-2:]).unsqueeze(1)


def pixel_maps(channels: int, hidden_channels: int, num_maps: int) -> nn.Sequential:
    """A normalisation and an MLP from pixels ``(N, P, C)`` to logits of maps ``(N, P, L)``."""
    return nn.Sequential(
        nn.LayerNorm(channels, eps=1e-6),
        nn.Linear(channels, hidden_channels),
        nn.GELU(),
        nn.Linear(hidden_channels, num_maps),
    )
