"""The projector: from the tokens back to the pixels (paper, section 3.3).

Letters: N batch, C map channels, H and W map size, P = H * W, L tokens, C_T token channels, d query width, h heads.
"""

from mmcv.cnn import build_norm_layer
from mmcv.cnn.bricks import DropPath
from torch import Tensor, nn

from vt.ops import project, project_attention, project_onto
from vt.ops.plain import split_heads
from vt.registry import MODELS

from .checks import require_divisible
from .grouped_linear import GroupedLinear
from .maps import to_map, to_pixels


@MODELS.register_module()
class Projector(nn.Module):
    """The paper's equation 4: ``X_out = X + softmax over L of ((X W_Q)(T W_K)^T) T W_V``.

    No pixel is projected: W_Q moves to the token side, ``X (T W_K W_Q^T)^T``, which is exact. Where C_T equals C there
    is no W_V. With every option at its default this is the equation.

    Where the paper is silent on initialisation: W_Q and W_K start ``d^(1/4)`` times smaller than LeCun's, so that the
    first logits have unit scale.

    Args:
        in_channels: C, channels of the feature map.
        token_channels: C_T, channels of a token.
        qk_channels: d; C by default.
        num_heads: heads of the attention.
        groups: channel groups of the matrices.
        scale_logits: divide the logits by ``sqrt(d / num_heads)``.
        norm_cfg: normalisation of the tokens before they are read, e.g. ``dict(type='LN')``; none by default.
        dropout: probability to drop an entry of what the pixels read.
        drop_path: probability to leave a sample's map as it is (stochastic depth).
        value_gain: factor on W_V's initial standard deviation: how loudly the tokens speak at the start.

    Raises:
        ValueError: ``num_heads`` or ``groups`` do not divide the channels.
    """

    def __init__(
        self,
        in_channels: int,
        token_channels: int,
        qk_channels: int | None = None,
        num_heads: int = 1,
        groups: int = 1,
        scale_logits: bool = False,
        norm_cfg: dict | None = None,
        dropout: float = 0.0,
        drop_path: float = 0.0,
        value_gain: float = 1.0,
    ) -> None:
        super().__init__()
        d = in_channels if qk_channels is None else qk_channels
        for divisor_name, divisor in (('num_heads', num_heads), ('groups', groups)):
            require_divisible('Projector', 'in_channels', in_channels, divisor_name, divisor)
            require_divisible('Projector', 'qk_channels', d, divisor_name, divisor)
        require_divisible('Projector', 'token_channels', token_channels, 'groups', groups)
        self.num_heads = num_heads
        self.scale = (d // num_heads) ** -0.5 if scale_logits else 1.0
        self.norm = build_norm_layer(norm_cfg, token_channels)[1] if norm_cfg else nn.Identity()
        self.query = GroupedLinear(in_channels, d, groups, gain=d**-0.25)
        self.key = GroupedLinear(token_channels, d, groups, gain=d**-0.25)
        same_width = in_channels == token_channels
        self.value = nn.Identity() if same_width else GroupedLinear(token_channels, in_channels, groups, value_gain)
        self.dropout = nn.Dropout(dropout)
        self.drop_path = DropPath(drop_path)
        self.drops = bool(dropout or drop_path)

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        """Write the tokens into the map.

        Args:
            x: feature map, ``(N, C, H, W)``.
            tokens: ``(N, L, C_T)``.

        Returns:
            The refined map, ``(N, C, H, W)``.
        """
        tokens = self.norm(tokens)
        values = split_heads(self.value(tokens), self.num_heads)  # N, h, L, C/h
        pixels, keys = to_pixels(x), self._moved_keys(tokens)  # N, P, C and N, h, L, C
        if not self.drops:
            return to_map(project_onto(pixels, keys, values, self.scale), x.shape[-2:])
        return x + to_map(self.drop_path(self.dropout(project(pixels, keys, values, self.scale))), x.shape[-2:])

    def attention(self, x: Tensor, tokens: Tensor) -> Tensor:
        """How much each pixel takes from each token, ``(N, h, L, H, W)``; sums to one over L."""
        maps = project_attention(to_pixels(x), self._moved_keys(self.norm(tokens)), self.scale)  # N, h, P, L
        return maps.transpose(-2, -1).unflatten(-1, x.shape[-2:])

    def _moved_keys(self, tokens: Tensor) -> Tensor:
        """``T W_K W_Q^T`` of each head, ``(N, h, L, C)``."""
        keys = self.key(tokens)  # N, L, d
        if self.num_heads == 1:
            return self.query.transposed(keys).unsqueeze(1)
        queries = self.query.dense().unflatten(1, (self.num_heads, -1)).permute(1, 2, 0)  # h, d/h, C
        return split_heads(keys, self.num_heads) @ queries
