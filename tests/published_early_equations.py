"""The equations of the paper's first version, written out as they stand: the oracle of the tests.

As in ``published_equations.py``: pixels are projected, every matrix is dense, one sample at a time.
"""

import torch
from published_equations import softmax, split
from published_survey import attend, average_pooling, convolution, gelu, layer_norm, linear, self_attention, under
from torch import Tensor


def static_tokenizer(x: Tensor, w_a: Tensor, w_v: Tensor) -> tuple[Tensor, Tensor]:
    """X ``(P, C)``, W_A ``(C, L)``, W_V ``(C, C_T)`` to T ``(L, C_T)`` and the maps A of one head, ``(1, P, L)``."""
    values = x @ w_v
    a = softmax(x @ w_a / x.shape[1] ** 0.5, dim=0)  # P, L
    return a.T @ values, a[None]


def dynamic_tokens(x: Tensor, t_a: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    """X ``(P, C)``, T_a ``(R, C_T)``, W_Q ``(C_T, C)``, W_K ``(C, C)``, W_V ``(C, C_T)`` to the new tokens and maps.

    Returns:
        T ``(R, C_T)`` and A of each head, ``(h, P, R)``.
    """
    queries, keys, values = t_a @ w_q, x @ w_k, x @ w_v
    tokens, maps = [], []
    for q, k, v in zip(split(queries, heads), split(keys, heads), split(values, heads)):
        a = softmax(k @ q.T / q.shape[1] ** 0.5, dim=0)  # P, R
        tokens.append(a.T @ v)
        maps.append(a)
    return torch.cat(tokens, dim=-1), torch.stack(maps)


def positions(
    maps: Tensor, shape: tuple[int, int], size: int, convolutions: list[Tensor], join: Tensor, w_p: Tensor
) -> Tensor:
    """A ``(h, P, L)``, weights of the convolutions, of the heads ``(h,)`` and of the mixing ``(C_P, C_P)`` to P.

    A resized map has the averages of the pixels that a cell touches, times ``HW / S^2``.
    """
    grids = average_pooling(maps.permute(2, 1, 0).unflatten(1, shape), (size, size))  # L, S, S, h
    grids = grids * shape[0] * shape[1] / size**2
    for weight in convolutions:
        grids = convolution(grids, dict(weight=weight), side=3, stride=2, padding=1, bias=False)
    return (grids @ join).flatten(1) @ w_p  # L, C_P


def transformer(t: Tensor, q: Tensor, k: Tensor, v: Tensor, f: Tensor, heads: int) -> Tensor:
    """T ``(L, C_T)``, Q and K ``(C_T, d)``, V and F ``(C_T, C_T)``."""
    t = t + attend((t @ q)[None], (t @ k)[None], (t @ v)[None], heads)[0]
    return t + t @ f


def encoder_layer(t: Tensor, weights: dict[str, Tensor], heads: int) -> Tensor:
    """T ``(L, C_T)`` through one pre-norm layer of a Vision Transformer; weights by the names of MMPretrain's layer."""
    t = t + self_attention(layer_norm(t, under(weights, 'ln1'), 1e-5), under(weights, 'attn'), heads)
    hidden = gelu(linear(layer_norm(t, under(weights, 'ln2'), 1e-5), under(weights, 'ffn.layers.0.0')))
    return t + linear(hidden, under(weights, 'ffn.layers.1'))
