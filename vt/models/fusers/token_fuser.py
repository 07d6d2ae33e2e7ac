"""TokenFuser: write tokens back to the pixels through gates (Ryoo et al., NeurIPS 2021).

Letters: N batch, C channels of map and tokens, H and W map size, P = H * W, L tokens.
"""

from torch import Tensor, nn

from vt.errors import UserError
from vt.ops.maps import in_shape_of, to_pixels
from vt.registry import MODELS

from ..tokenizers.token_learner import pixel_maps


@MODELS.register_module()
class TokenFuser(nn.Module):
    """``X_out = X + sigmoid(MLP(norm(X))) norm(M norm(T))`` (section 2.2), where M, L x L, mixes the tokens.

    The gates depend on the pixel only; the softmax of VT's projector also depends on the keys of the tokens.
    M is initialised to zero, so nothing is added at the start (the authors' code).

    Args:
        in_channels: C, channels of the feature map.
        token_channels: channels of a token, equal to C.
        num_tokens: L.
        hidden_channels: hidden channels of the MLP.

    Raises:
        UserError: ``token_channels`` is not C.
    """

    def __init__(self, in_channels: int, token_channels: int, num_tokens: int = 8, hidden_channels: int = 64) -> None:
        super().__init__()
        if token_channels != in_channels:
            raise UserError(
                f'TokenFuser: in_channels={in_channels} and token_channels={token_channels} must be equal; change one'
            )
        self.norm = nn.LayerNorm(token_channels, eps=1e-6)
        self.mix = nn.Conv1d(num_tokens, num_tokens, 1)  # not Linear, which backbones initialise
        nn.init.zeros_(self.mix.weight)
        nn.init.zeros_(self.mix.bias)
        self.mixed_norm = nn.LayerNorm(token_channels, eps=1e-6)
        self.gates = pixel_maps(in_channels, hidden_channels, num_tokens)

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        """Write tokens ``(N, L, C)`` to a map ``(N, C, H, W)`` or its pixels ``(N, P, C)``; return the same shape."""
        tokens = self.mixed_norm(self.mix(self.norm(tokens)))
        return x + in_shape_of(x, self.gates(to_pixels(x)).sigmoid() @ tokens)

    def attention(self, x: Tensor, tokens: Tensor) -> Tensor:
        """Gates of each pixel and token, ``(N, 1, L, H, W)``; they do not sum to one."""
        return self.gates(to_pixels(x)).sigmoid().transpose(1, 2).unflatten(-1, x.shape[-2:]).unsqueeze(1)
