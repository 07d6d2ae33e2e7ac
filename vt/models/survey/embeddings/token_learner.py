"""TokenLearner: spatial attention maps computed by an MLP on each pixel (Ryoo et al., NeurIPS 2021).

Letters: N batch, C map channels, H and W map size, P = H * W, L tokens, C_T token channels.
"""

from torch import Tensor, nn

from vt.models.visual_transformers.tokenizer import Tokenizer
from vt.ops.maps import to_pixels
from vt.registry import MODELS

HIDDEN_CHANNELS = 64  # of the MLP


@MODELS.register_module()
class TokenLearner(Tokenizer):
    """``A = softmax over HW of MLP(norm(X))``, ``T = A^T X`` (section 2.1; version 1.1 of the authors' code).

    It uses an MLP in place of the linear filters of VT's :class:`FilterTokenizer`.

    Args:
        in_channels: C.
        token_channels: C_T.
        num_tokens: L.
        **kwargs: other options of :class:`Tokenizer`: groups, norm_cfg, value_matrix.
    """

    def __init__(self, in_channels: int, token_channels: int, num_tokens: int = 8, **kwargs) -> None:
        super().__init__(in_channels, token_channels, num_tokens, **kwargs)
        self.maps = pixel_maps(in_channels, num_tokens)

    def pool(self, x: Tensor, tokens: Tensor | None) -> Tensor:
        x = to_pixels(x)  # N, P, C
        return self.maps(x).softmax(dim=1).transpose(1, 2) @ x

    def attention(self, x: Tensor, tokens: Tensor | None = None) -> Tensor:
        """Attention weights of each token, ``(N, 1, L, H, W)``; arguments as in the forward pass."""
        return self.maps(to_pixels(x)).softmax(dim=1).transpose(1, 2).unflatten(-1, x.shape[-2:]).unsqueeze(1)


def pixel_maps(channels: int, num_maps: int) -> nn.Sequential:
    """Return a normalisation and an MLP that map pixels ``(N, P, C)`` to logits ``(N, P, L)``."""
    return nn.Sequential(
        nn.LayerNorm(channels, eps=1e-6),
        nn.Linear(channels, HIDDEN_CHANNELS),
        nn.GELU(),
        nn.Linear(HIDDEN_CHANNELS, num_maps),
    )
