"""The feed-forward network of a block: two linear layers, with optional local parts, normalisations and squeezes.

Letters: N batch, K class tokens, P tokens of the grid, C channels, M hidden channels.
"""

import torch
from mmcv.cnn import build_activation_layer
from mmpretrain.models.utils import SELayer
from torch import Tensor, nn

from vt.models.checks import optional_norm, optional_part, require_with
from vt.models.grid import Size, TokenPart, split_class_tokens, to_map, to_tokens
from vt.registry import MODELS

CLASS_TOKENS = dict(fed=None, passed=torch.clone, dropped=torch.zeros_like)  # treatment of class tokens


@MODELS.register_module()
class FeedForward(TokenPart):
    """``act(x W_1 + b_1) W_2 + b_2``, or with a local part ``act(local(fc1_act(x W_1 + b_1))) W_2 + b_2``.

    PVTv2 (section 3.1) adds only the local part. CeiT's locally enhanced feed-forward (section 3.2) and LocalViT's
    inverted residual (section 3.2) also normalise after every layer and exclude class tokens.

    Args:
        channels: C.
        ratio: M / C.
        act_cfg: config of the activation; GELU by default.
        local: config of a token part between the linear layers, such as :class:`vt.models.OnMap`.
        fc1_act_cfg: config of an activation before the local part; none by default.
        squeeze: config of a token part after the activation, such as :class:`vt.models.SqueezeExcite`.
        norm_cfg: config of a normalisation of tokens after each linear layer; none by default.
        bias: add biases to the linear layers.
        class_tokens: ``'fed'``, processed like other tokens; ``'passed'``, unchanged (CeiT); ``'dropped'``, set to zero
            (LocalViT).
        out_channels: channels of the output; C by default.
        fc2_act_cfg: config of an activation of the output (HRFormer); none by default.
        dropout: dropout probability of the input of the second layer, and of the output.
    """

    def __init__(
        self,
        channels: int,
        ratio: float = 4.0,
        act_cfg: dict | None = None,
        local: dict | None = None,
        fc1_act_cfg: dict | None = None,
        squeeze: dict | None = None,
        norm_cfg: dict | None = None,
        bias: bool = True,
        class_tokens: str = 'fed',
        out_channels: int | None = None,
        fc2_act_cfg: dict | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        require_with('FeedForward', 'fc1_act_cfg', fc1_act_cfg, local=local)
        hidden = int(channels * ratio)
        self.fc1 = nn.Linear(channels, hidden, bias=bias)
        self.fc1_norm = optional_norm(norm_cfg, hidden)
        self.fc1_act = build_activation_layer(fc1_act_cfg) if fc1_act_cfg else nn.Identity()
        self.local = optional_part(local, channels=hidden)
        self.act = build_activation_layer(act_cfg or dict(type='GELU'))
        self.squeeze = optional_part(squeeze, channels=hidden)
        out_channels = out_channels or channels
        self.fc2 = nn.Linear(hidden, out_channels, bias=bias)
        self.fc2_norm = optional_norm(norm_cfg, out_channels)
        self.fc2_act = build_activation_layer(fc2_act_cfg) if fc2_act_cfg else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.class_result = CLASS_TOKENS[class_tokens]

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, out_channels)``."""
        if self.class_result is None:
            return self._feed(x, size)
        classes, tokens = split_class_tokens(x, size)
        return torch.cat([self.class_result(classes), self._feed(tokens, size)], dim=1)

    def _feed(self, x: Tensor, size: Size) -> Tensor:
        x = self.fc1_act(self.fc1_norm(self.fc1(x)))  # N, K + P, M
        x = self.dropout(self.squeeze(self.act(self.local(x, size)), size))  # N, K + P, M
        return self.dropout(self.fc2_act(self.fc2_norm(self.fc2(x))))  # N, K + P, out_channels


@MODELS.register_module()
class SqueezeExcite(TokenPart, SELayer):
    """MMPretrain's squeeze-and-excitation layer, on tokens of a grid.

    Args:
        channels: C.
        **kwargs: other options of :class:`mmpretrain.models.utils.SELayer`, such as ``squeeze_channels``.
    """

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, P, C)``."""
        return to_tokens(super().forward(to_map(x, size)))
