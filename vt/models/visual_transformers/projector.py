"""The projector, which writes tokens back to the pixels (paper, section 3.3).

Letters: N batch, C map channels, H and W map size, P = H * W, L tokens, C_T token channels, h heads.
"""

from mmcv.cnn.bricks import DropPath
from torch import Tensor, nn

from vt.models.checks import optional_norm, require_positive
from vt.ops import project, project_attention, project_onto
from vt.ops.maps import split_heads
from vt.registry import MODELS

from .grouped_linear import GroupedLinear


@MODELS.register_module()
class Projector(nn.Module):
    """Project the tokens onto the map: ``X_out = X + softmax over L of ((X W_Q)(T W_K)^T) T`` (paper, equation 4).

    W_Q is applied to the tokens instead of the pixels, ``X (T W_K W_Q^T)^T``: same result, cheaper. Several heads cost
    as much as one if the groups of W_Q are a multiple of the heads: each head then reads its own channels only. If C_T
    differs from C, or with ``value_matrix``, the last T is ``T W_V``. With the defaults and C_T = C this is the
    equation as published.

    The paper gives no initialisation. W_Q and W_K are ``C^(1/4)`` times smaller than with LeCun initialisation, so
    that a map and tokens of unit scale give logits of unit scale; with ``scale_logits`` they are enlarged to give
    the same scale.

    Args:
        in_channels: C, channels of the feature map.
        token_channels: C_T, channels of a token.
        num_heads: number of heads of the attention.
        groups: channel groups of the matrices.
        scale_logits: divide the logits by ``sqrt(C / num_heads)``.
        norm_cfg: normalisation of the tokens, e.g. ``dict(type='LN')``; none by default.
        drop_path: probability of skipping the update for a sample (stochastic depth).
        value_gain: factor on the initial standard deviation of W_V.
        value_matrix: use W_V also if C_T equals C.
        query_groups: channel groups of W_Q; ``groups`` by default.

    Raises:
        UserError: a number below 1; ``groups`` or ``query_groups`` do not divide the channels.
    """

    def __init__(
        self,
        in_channels: int,
        token_channels: int,
        num_heads: int = 1,
        groups: int = 1,
        scale_logits: bool = False,
        norm_cfg: dict | None = None,
        drop_path: float = 0.0,
        value_gain: float = 1.0,
        value_matrix: bool = False,
        query_groups: int | None = None,
    ) -> None:
        super().__init__()
        query_groups = groups if query_groups is None else query_groups
        require_positive(self, token_channels=token_channels, num_heads=num_heads, groups=groups)
        require_positive(self, query_groups=query_groups)
        self.num_heads = num_heads
        self.scale = (in_channels / num_heads) ** -0.5 if scale_logits else 1.0
        self.norm = optional_norm(norm_cfg, token_channels)
        gain = in_channels**-0.25 * self.scale**-0.5
        self.query = GroupedLinear(in_channels, in_channels, query_groups, gain, pixel_side=True)
        self.own_channels = self.query.groups % num_heads == 0  # each head reads only its own channels
        self.key = GroupedLinear(token_channels, in_channels, groups, gain)
        has_value = value_matrix or in_channels != token_channels
        self.value = GroupedLinear(token_channels, in_channels, groups, value_gain) if has_value else nn.Identity()
        self.drop_path = DropPath(drop_path)
        self.drops = bool(drop_path)

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        """Project the tokens onto the map.

        Args:
            x: feature map, ``(N, C, H, W)``.
            tokens: ``(N, L, C_T)``.

        Returns:
            The refined map, ``(N, C, H, W)``.
        """
        operands = self._operands(x, tokens)
        if not (self.drops and self.training):
            return project_onto(*operands, self.scale).reshape(x.shape)
        read = project(*operands, self.scale).reshape(x.shape)
        return x.to(read.dtype) + self.drop_path(read)  # in the precision of autocast

    def attention(self, x: Tensor, tokens: Tensor) -> Tensor:
        """Attention weights ``(N, h, L, H, W)``; each pixel's sum to one over L."""
        by_head, keys, _ = self._operands(x, tokens)
        maps = project_attention(by_head, keys, self.scale)  # N, h, P, L or N h, 1, P, L
        maps = maps.reshape(x.shape[0], self.num_heads, *maps.shape[-2:])
        return maps.transpose(-2, -1).unflatten(-1, x.shape[-2:])

    def _operands(self, x: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the map ``(N, C, H, W)``, the keys ``T W_K W_Q^T`` ``(N, h, L, C)`` and the values ``(N, h, L, C/h)``.

        With ``own_channels`` the heads become part of the batch: ``(N h, C/h, H, W)`` and ``(N h, 1, L, C/h)``.
        """
        tokens = self.norm(tokens)
        keys = self.key(tokens)  # T W_K: N, L, C
        values = split_heads(self.value(tokens), self.num_heads)  # N, h, L, C/h
        if not self.own_channels:
            w_q = self.query.dense().unflatten(1, (self.num_heads, -1)).permute(1, 2, 0)  # W_Q^T: h, C/h, C
            return x, split_heads(keys, self.num_heads) @ w_q, values
        moved = split_heads(self.query.transposed(keys), self.num_heads)  # T W_K W_Q^T: N, h, L, C/h
        by_head = x if self.num_heads == 1 else x.unflatten(1, (self.num_heads, -1)).flatten(0, 1)  # N h, C/h, H, W
        return by_head, moved.flatten(0, 1).unsqueeze(1), values.flatten(0, 1).unsqueeze(1)
