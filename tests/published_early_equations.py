"""The equations of the paper's first version, written out as they stand: the oracle of the tests.

As in ``published_equations.py``: pixels are projected, every matrix is dense, one sample at a time.
"""

import torch
from published_equations import softmax, split
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


def resize(grid: Tensor, size: int) -> Tensor:
    """A map ``(H, W)`` to ``(S, S)``: averages of the pixels that a cell touches, times ``HW / S^2``."""
    height, width = grid.shape
    cells = []
    for row in range(size):
        rows = slice(row * height // size, -(-(row + 1) * height // size))
        for column in range(size):
            columns = slice(column * width // size, -(-(column + 1) * width // size))
            cells.append(grid[rows, columns].mean())
    return torch.stack(cells).reshape(size, size) * height * width / size**2


def strided_convolution(x: Tensor, weight: Tensor) -> Tensor:
    """X ``(C, H, W)``, weight ``(C_out, C, 3, 3)``: a zero beyond each edge, every other pixel."""
    channels, height, width = x.shape
    padded = x.new_zeros(channels, height + 2, width + 2)
    padded[:, 1:-1, 1:-1] = x
    rows = []
    for row in range(0, height, 2):
        cells = [(weight * padded[:, row : row + 3, col : col + 3]).sum(dim=(1, 2, 3)) for col in range(0, width, 2)]
        rows.append(torch.stack(cells, dim=-1))
    return torch.stack(rows, dim=-2)


def positions(
    maps: Tensor, shape: tuple[int, int], size: int, convolutions: list[Tensor], join: Tensor, w_p: Tensor
) -> Tensor:
    """A ``(h, P, L)``, weights of the convolutions, of the heads ``(h,)`` and of the mixing ``(C_P, C_P)`` to P."""
    encoded = []
    for token in range(maps.shape[-1]):
        grids = torch.stack([resize(head.reshape(shape), size) for head in maps[..., token]])  # h, S, S
        for weight in convolutions:
            grids = strided_convolution(grids, weight)
        encoded.append((join[:, None, None] * grids).sum(dim=0).reshape(-1) @ w_p)
    return torch.stack(encoded)  # L, C_P


def transformer(t: Tensor, q: Tensor, k: Tensor, v: Tensor, f: Tensor, heads: int) -> Tensor:
    """T ``(L, C_T)``, Q and K ``(C_T, d)``, V and F ``(C_T, C_T)``."""
    related = []
    for tq, tk, tv in zip(split(t @ q, heads), split(t @ k, heads), split(t @ v, heads)):
        related.append(softmax(tq @ tk.T / tq.shape[1] ** 0.5, dim=1) @ tv)
    t = t + torch.cat(related, dim=-1)
    return t + t @ f


def layer_norm(t: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """T ``(L, C_T)``, each token to mean zero and variance one."""
    centred = t - t.mean(dim=1, keepdim=True)
    return centred / (centred.square().mean(dim=1, keepdim=True) + 1e-5).sqrt() * weight + bias


def gelu(x: Tensor) -> Tensor:
    return x * (1 + torch.erf(x / 2**0.5)) / 2


def encoder_layer(t: Tensor, weights: dict[str, Tensor], heads: int) -> Tensor:
    """T ``(L, C_T)`` through one pre-norm layer of a Vision Transformer; weights by the names of MMPretrain's layer."""
    normed = layer_norm(t, weights['ln1.weight'], weights['ln1.bias'])
    queries, keys, values = (normed @ weights['attn.qkv.weight'].T + weights['attn.qkv.bias']).chunk(3, dim=1)
    read = []
    for q, k, v in zip(split(queries, heads), split(keys, heads), split(values, heads)):
        read.append(softmax(q @ k.T / q.shape[1] ** 0.5, dim=1) @ v)
    t = t + torch.cat(read, dim=1) @ weights['attn.proj.weight'].T + weights['attn.proj.bias']
    normed = layer_norm(t, weights['ln2.weight'], weights['ln2.bias'])
    hidden = gelu(normed @ weights['ffn.layers.0.0.weight'].T + weights['ffn.layers.0.0.bias'])
    return t + hidden @ weights['ffn.layers.1.weight'].T + weights['ffn.layers.1.bias']
