"""The feed-forward part of a block: two matrices, and what may stand around them.

Letters: N batch, K class tokens, P tokens of the grid, C channels, M hidden channels.
"""

from mmcv.cnn import build_activation_layer, build_norm_layer
from torch import Tensor, nn

from vt.registry import MODELS

from ..grid import Size


@MODELS.register_module()
class FeedForward(nn.Module):
    """``act(x W_1 + b_1) W_2 + b_2``; with ``local``, ``act(local(x W_1 + b_1)) W_2 + b_2`` (PVTv2, section 3.1).

    With ``norm_cfg`` every matrix and the local part is followed by its normalisation and, but the last one, by its own
    activation: the locally enhanced feed-forward of CeiT (section 3.2) and LocalViT's inverted residual.

    Args:
        channels: C.
        ratio: M / C.
        local: config of a token part between the matrices, such as :class:`vt.models.OnMap`.
        act_cfg: activation.
        norm_cfg: normalisation of M and C channels in turn, ``dict(type='BN1d')`` for instance; none by default.
        last_act: have an activation behind the last normalisation, too.
        bias: of the matrices.
        dropout: probability to drop an entry behind each matrix.
    """

    def __init__(
        self,
        channels: int,
        ratio: float = 4.0,
        local: dict | None = None,
        act_cfg: dict | None = None,
        norm_cfg: dict | None = None,
        last_act: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        hidden = int(channels * ratio)
        act_cfg = act_cfg or dict(type='GELU')

        def follow(width: int, act: bool) -> nn.Module:
            norms = [_OnTokens(build_norm_layer(norm_cfg, width)[1])] if norm_cfg else []
            return nn.Sequential(*norms, *([build_activation_layer(act_cfg)] if act else []))

        self.enter = nn.Linear(channels, hidden, bias=bias)
        self.after_enter = follow(hidden, act=bool(norm_cfg) or not local)
        self.local = MODELS.build(local, default_args=dict(channels=hidden)) if local else None
        self.after_local = follow(hidden, act=True) if local else nn.Identity()
        self.leave = nn.Linear(hidden, channels, bias=bias)
        self.after_leave = follow(channels, act=last_act)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        x = self.after_enter(self.enter(x))
        if self.local is not None:
            x = self.after_local(self.local(x, size))
        return self.dropout(self.after_leave(self.leave(self.dropout(x))))


class _OnTokens(nn.Module):
    """A normalisation of channels, which come last in tokens and second in its own input."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.transpose(1, 2)).transpose(1, 2)
