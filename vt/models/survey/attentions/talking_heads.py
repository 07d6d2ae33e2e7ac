"""Attention with mixed heads: talking heads (CaiT), re-attention (DeepViT), efficient attention (ResT).

Letters: N batch, h heads, d channels per head, T queries, S keys.
"""

from torch import Tensor, nn

from vt.models.grid import Size
from vt.registry import MODELS

from .multi_head import Attention
from .reductions import ReducedAttention


@MODELS.register_module()
class HeadMixing(nn.Sequential):
    """Mix the heads of attention weights or logits by a 1x1 convolution, a normalisation, or both.

    Args:
        num_heads: h.
        convolve: use the convolution.
        norm: class of the normalisation, ``'BatchNorm2d'`` or ``'InstanceNorm2d'``; none by default.
        gain: fixed factor on the result.
    """

    def __init__(self, num_heads: int, convolve: bool = True, norm: str | None = None, gain: float = 1.0) -> None:
        layers: list[nn.Module] = [nn.Conv2d(num_heads, num_heads, 1)] if convolve else []
        layers += [dict(BatchNorm2d=nn.BatchNorm2d, InstanceNorm2d=nn.InstanceNorm2d)[norm](num_heads)] if norm else []
        super().__init__(*layers)
        self.gain = gain

    def forward(self, input: Tensor) -> Tensor:
        """``(N, h, T, S)`` to ``(N, h, T, S)``."""
        return super().forward(input) if self.gain == 1 else self.gain * super().forward(input)


@MODELS.register_module()
class TalkingHeadsAttention(Attention):
    """Attention with mixed heads: ``mix_maps(softmax(mix(Q K^T / sqrt(d)))) V``, projected.

    The attention weights are materialised.

    Args:
        channels: C, channels of a token.
        num_heads: h.
        mix: config of a module applied to the logits, such as :class:`HeadMixing`; none by default.
        mix_maps: config of a module applied to the attention weights; none by default.
        size, inner_channels, project, proj_dropout, qkv_bias: options of :class:`Attention`, with the same defaults.
    """

    def add_parts(
        self, channels: int, size: Size, mix: dict | None = None, mix_maps: dict | None = None, **parts
    ) -> None:
        """Create the parts of the next class in the method resolution order, then the modules that mix the heads."""
        super().add_parts(channels, size, **parts)
        self.mix, self.mix_maps = (
            MODELS.build(config, default_args=dict(num_heads=self.num_heads)) if config else nn.Identity()
            for config in (mix, mix_maps)
        )

    def read(self, q: Tensor, k: Tensor, v: Tensor, size: Size) -> Tensor:
        return self.weights(q, k, size) @ v

    def weights(self, q: Tensor, k: Tensor, size: Size) -> Tensor:
        return self.mix_maps(self.mix(self.logits(q, k, size)).softmax(dim=-1))


@MODELS.register_module()
class EfficientAttention(TalkingHeadsAttention, ReducedAttention):
    """Efficient multi-head self-attention of ResT (section 3.1): downsampled keys and values, mixed heads.

    Args:
        channels: C, channels of a token.
        num_heads: h.
        reduce: config of the downsampling, called with ``(x, size)``.
        mix, mix_maps: configs of modules applied to the logits and to the attention weights; none by default.
        size, inner_channels, project, proj_dropout: options of :class:`Attention`, with the same defaults.
    """
