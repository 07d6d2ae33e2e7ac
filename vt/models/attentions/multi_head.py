"""Attention among tokens: the equation, with a slot for each choice in which the survey's models differ.

Letters: N batch, K class tokens, P tokens of the grid, C channels, D inner channels, h heads, d = D / h, W windows of
all images (N where the grid is not cut), T tokens that attend, S tokens that are attended to.
"""

from torch import Tensor, nn

from vt.ops.attend import attend
from vt.ops.maps import merge_heads, split_heads
from vt.registry import MODELS

from ..checks import build_part, optional_part, refuse_together, require_divisible, require_grid, require_with
from ..grid import Size, TokenPart
from ..positions.relative import NoBias
from .masks import add_mask, learns_on_cpu, repeat_mask, sum_masks
from .windows import WholeGrid


@MODELS.register_module()
class Attention(TokenPart):
    """``softmax(Q K^T / sqrt(d) + B) V``, projected: of all tokens to all where no slot is filled.

    Args:
        channels: C.
        num_heads: h.
        size: the grid's in training.
        inner_channels: D; C by default.
        qkv_bias: have biases in the projections to Q, K and V.
        project: have the projection of the result, D to C.
        windows: config of windows, outside of which a token sees nothing, :class:`vt.models.attentions.Windows`.
        reduce: config of a downsampling of the tokens that keys and values are made of, called with ``(x, size)``.
        bias: config of B, by offset in a window or, without windows, in the grid.
        mix: config of what is done to the heads' logits before the softmax, and ``mix_maps`` to the attention weights
            behind it, ``(W, h, T, S)`` each; the weights are then materialised.
        local: config of a token part that adds to the result what it makes of V.
        local_in_windows: that part sees each window by itself instead of the grid.
        dropout, proj_dropout: probability to drop an attention weight, and an entry of the result.

    Raises:
        UserError: ``num_heads`` does not divide D; slots that don't go together.
    """

    def __init__(
        self,
        channels: int,
        num_heads: int,
        size: Size = (0, 0),
        inner_channels: int | None = None,
        qkv_bias: bool = True,
        project: bool = True,
        windows: dict | None = None,
        reduce: dict | None = None,
        bias: dict | None = None,
        mix: dict | None = None,
        mix_maps: dict | None = None,
        local: dict | None = None,
        local_in_windows: bool = False,
        dropout: float = 0.0,
        proj_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        name, inner = type(self).__name__, inner_channels or channels
        require_divisible(name, 'channels', inner, 'num_heads', num_heads)
        refuse_together(name, 'reduce', reduce, windows=windows, bias=bias, local=local)
        require_with(name, 'local_in_windows', local_in_windows, windows=windows, local=local)
        self.num_heads, self.scale = num_heads, (inner // num_heads) ** -0.5
        self.takes_class_tokens = local is None
        self.windows = MODELS.build(windows, default_args=dict(size=size)) if windows else WholeGrid()
        self.reduce = optional_part(reduce, channels=channels)
        require_grid(name, self.reduce.smallest_side, size)
        self.reduces = bool(reduce)
        if self.reduces:
            self.query = nn.Linear(channels, inner, bias=qkv_bias)
            self.key_value = nn.Linear(channels, 2 * inner, bias=qkv_bias)
        else:
            self.qkv = nn.Linear(channels, 3 * inner, bias=qkv_bias)
        heads, window = dict(num_heads=num_heads), self.windows.sides(size)
        self.bias = MODELS.build(bias, default_args=heads | dict(window=window)) if bias else NoBias()
        self.mix = MODELS.build(mix, default_args=heads) if mix else nn.Identity()
        self.mix_maps = MODELS.build(mix_maps, default_args=heads) if mix_maps else nn.Identity()
        self.materialises = bool(mix or mix_maps)
        self.local = build_part(local, channels=inner) if local else None
        self.local_in_windows = local_in_windows
        self.dropout = nn.Dropout(dropout)
        self.proj = nn.Linear(inner, channels) if project else nn.Identity()
        self.proj_dropout = nn.Dropout(proj_dropout)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        q, k, v = self.project(x, size)  # W, h, T, d; W, h, S, d
        read = self.read(q, k, v, self.mask(q, size))  # W, h, T, d
        x = self.reverse(merge_heads(read), v, size)  # N, K + P, D
        return self.proj_dropout(self.proj(x))  # N, K + P, C

    def attention(self, x: Tensor, size: Size) -> Tensor:
        """How much each token takes from each, ``(W, h, T, S)``, for the same arguments as the forward pass."""
        q, k, _ = self.project(x, size)
        return self.maps(q, k, self.mask(q, size))

    def project(self, x: Tensor, size: Size) -> tuple[Tensor, ...]:
        """Q, ``(W, h, T, d)``, K and V, ``(W, h, S, d)``."""
        if self.reduces:
            qkv = self.query(x), *self.key_value(self.reduce(x, size)).chunk(2, dim=-1)
        else:
            qkv = self.qkv(self.windows.partition(x, size)).chunk(3, dim=-1)
        return tuple(split_heads(part, self.num_heads) for part in qkv)

    def mask(self, q: Tensor, size: Size) -> Tensor | None:
        """B and what a shift keeps apart: ``(1, h, T, S)`` or, for each window of an image, ``(W_n, h, T, S)``."""
        bias = self.bias(self.windows.sides(size))  # h, T, S
        return sum_masks(self.windows.mask_of(size), None if bias is None else bias[None])

    def read(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """``softmax(Q K^T / sqrt(d) + B) V``, ``(W, h, T, d)``."""
        if self.materialises or learns_on_cpu(mask):
            return self.dropout(self.maps(q, k, mask)) @ v
        dropout = self.dropout.p if self.training else 0.0
        return attend(q, k, v, repeat_mask(mask, len(q)), dropout, scale=self.scale)

    def maps(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        """``softmax(Q K^T / sqrt(d) + B)``, ``(W, h, T, S)``."""
        logits = add_mask(q * self.scale @ k.transpose(-2, -1), mask)
        return self.mix_maps(self.mix(logits).softmax(dim=-1))

    def reverse(self, read: Tensor, v: Tensor, size: Size) -> Tensor:
        """What was read, ``(W, T, D)``, back in the grid, with what the local part makes of V, ``(N, K + P, D)``."""
        if self.local is None:
            return self.windows.reverse(read, size)
        v = merge_heads(v)  # W, S, D
        if self.local_in_windows:
            return self.windows.reverse(read + self.local(v, self.windows.sides(size)), size)
        return self.windows.reverse(read, size) + self.local(self.windows.reverse(v, size), size)
