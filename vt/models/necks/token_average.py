"""Average pooling of tokens for a linear classifier."""

from torch import Tensor, nn

from vt.registry import MODELS


@MODELS.register_module()
class TokenAverage(nn.Module):
    """Average over the tokens (paper, section 4.1): ``(N, L, C_T)`` to ``(N, C_T)``, for each item of a tuple."""

    def forward(self, feats: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(tokens.mean(dim=1) for tokens in feats)
