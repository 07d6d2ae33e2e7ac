"""Attention among tokens, with a slot for each choice in which the survey's systems differ.

Letters: N batch, K class tokens, P tokens of the grid, C channels, D inner channels, h heads, d = D / h, T tokens that
attend, S tokens that are attended to; windows stand in the batch.
"""

from torch import Tensor, nn

from vt.errors import UserError
from vt.ops.attend import attend
from vt.ops.maps import merge_heads, split_heads
from vt.registry import MODELS

from ..checks import require_divisible
from ..grid import Size


def build(config: dict | None, **defaults) -> nn.Module | None:
    """A part of a config, None where there is none."""
    return MODELS.build(config, default_args=defaults) if config else None


@MODELS.register_module()
class Attention(nn.Module):
    """``softmax(Q K^T / sqrt(d) + B) V``, projected: of all tokens to all where no slot is filled.

    Args:
        channels: C.
        num_heads: h.
        size: the grid's in training.
        inner_channels: D; C by default.
        qkv_bias: have biases in the projections to Q, K and V.
        project: have the projection of the result, D to C.
        windows: config of who sees whom, such as :class:`vt.models.attentions.Windows`.
        reduce: config of what keys and values see instead of the tokens, called with ``(x, size)``.
        bias: config of B, by offset in a window or, without windows, in the grid.
        mix: config of what is done to the heads' logits before the softmax, and ``mix_maps`` to their maps behind it,
            ``(N, h, T, S)`` each; the maps are then written down.
        local: config of a token part that adds to the result what it makes of V.
        local_in_windows: that part sees each window by itself instead of the grid.
        dropout, proj_dropout: probability to drop an entry of the map, and of the result.

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
        inner = inner_channels or channels
        require_divisible(type(self).__name__, 'channels', inner, 'num_heads', num_heads)
        slots = dict(windows=windows, reduce=reduce, bias=bias, local=local)
        for one, other in (('windows', 'reduce'), ('bias', 'reduce'), ('local', 'reduce')):
            if slots[one] and slots[other]:
                raise UserError(f'{type(self).__name__}: {one} and {other} together; leave out one of the two')
        if local_in_windows and not windows:
            raise UserError(f'{type(self).__name__}: local_in_windows without windows; give windows, or leave it out')
        self.num_heads = num_heads
        self.scale = (inner // num_heads) ** -0.5
        self.windows = build(windows, size=size)
        self.reduce = build(reduce, channels=channels)
        self.takes_class_tokens = local is None
        if 0 < min(size) < getattr(self.reduce, 'smallest_side', 0):
            raise UserError(
                f'{type(self).__name__}: reduce needs a grid of {self.reduce.smallest_side} tokens on a side, and the '
                f'grid has {"x".join(map(str, size))}'
            )
        if self.reduce is None:
            self.qkv = nn.Linear(channels, 3 * inner, bias=qkv_bias)
        else:
            self.query = nn.Linear(channels, inner, bias=qkv_bias)
            self.key_value = nn.Linear(channels, 2 * inner, bias=qkv_bias)
        self.bias = build(bias, num_heads=num_heads, window=self.windows.window if self.windows else size)
        self.mix, self.mix_maps = (build(part, num_heads=num_heads) for part in (mix, mix_maps))
        self.local = build(local, channels=inner)
        self.local_in_windows = local_in_windows
        self.dropout = nn.Dropout(dropout)
        self.proj = nn.Linear(inner, channels) if project else nn.Identity()
        self.proj_dropout = nn.Dropout(proj_dropout)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        q, k, v = self._project(x, size)
        read = self._read(q, k, v, size)
        return self.proj_dropout(self.proj(self._return(merge_heads(read), v, size)))

    def attention(self, x: Tensor, size: Size) -> Tensor:
        """How much each token takes from each, ``(N, h, T, S)``, for the same arguments as the forward pass."""
        q, k, _ = self._project(x, size)
        return self._maps(q, k, self._mask(q, size))

    def _read(self, q: Tensor, k: Tensor, v: Tensor, size: Size) -> Tensor:
        """What each query takes of the values, ``(N, h, T, d)``."""
        mask = self._mask(q, size)
        # A bias that learns makes PyTorch write the maps down on a CPU too, and look for rows that see nothing.
        learns = mask is not None and mask.requires_grad and mask.device.type == 'cpu'
        if learns or self.mix is not None or self.mix_maps is not None:
            return self.dropout(self._maps(q, k, mask)) @ v
        if mask is not None and mask.shape[0] > 1:
            mask = mask.repeat(q.shape[0] // mask.shape[0], 1, 1, 1)
        dropout = self.dropout.p if self.training else 0.0
        return attend(q, k, v, mask, dropout, scale=self.scale)

    def _project(self, x: Tensor, size: Size) -> tuple[Tensor, Tensor, Tensor]:
        """Q, K and V, ``(N, h, T, d)`` and ``(N, h, S, d)``."""
        if self.reduce is not None:
            q, (k, v) = self.query(x), self.key_value(self.reduce(x, size)).chunk(2, dim=-1)
        else:
            x = x if self.windows is None else self.windows.split(x, size)
            q, k, v = self._qkv(x).chunk(3, dim=-1)
        return self._compared(*(split_heads(each, self.num_heads) for each in (q, k, v)))

    def _qkv(self, x: Tensor) -> Tensor:
        return self.qkv(x)

    def _compared(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """How queries and keys meet; a subclass says otherwise."""
        return q, k, v

    def _mask(self, q: Tensor, size: Size) -> Tensor | None:
        """B and what windows keep apart, ``(1, h, T, S)`` for all or ``(W_n, 1 or h, T, S)`` for an image's windows."""
        bias = None if self.bias is None else self._bias(size)  # 1, h, T, S
        apart = None if self.windows is None else self.windows.mask_of(size)  # W_n, 1, T, S
        if apart is None:
            return bias
        return apart if bias is None else apart + bias

    def _bias(self, size: Size) -> Tensor:
        return self.bias(size if self.windows is None else self.windows.sides(size))[None]

    def _maps(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        logits = q * self.scale @ k.transpose(-2, -1)
        if mask is not None:
            logits = (logits.unflatten(0, (-1, mask.shape[0])) + mask).flatten(0, 1)
        logits = logits if self.mix is None else self.mix(logits)
        maps = logits.softmax(dim=-1)
        return maps if self.mix_maps is None else self.mix_maps(maps)

    def _return(self, read: Tensor, v: Tensor, size: Size) -> Tensor:
        """What was read, ``(N, T, D)``, back in the grid, with what the local part makes of V."""
        if self.local is not None and self.local_in_windows:
            read = read + self.local(merge_heads(v), self.windows.sides(size))
        if self.windows is not None:
            read = self.windows.merge(read, size)
        if self.local is not None and not self.local_in_windows:
            v = merge_heads(v)
            read = read + self.local(v if self.windows is None else self.windows.merge(v, size), size)
        return read
