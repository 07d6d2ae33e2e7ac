"""The plain path: two matrix products and a softmax, which also yields the attention maps.

Pixels are never projected: every pixel-side matrix of the paper is moved to the token side, which is exact,
since ``(X W_Q)(T W_K)^T = X (T W_K W_Q^T)^T`` and ``A^T (X W_V) = (A^T X) W_V``.

Pixels come as a view of a map, ``(N, P, C)``. Its memory is pixel by pixel (channels_last) or channel by channel, and
each product is written in the orientation that reads and writes that memory in order: nothing is copied or reordered.

Letters: N batch, P pixels (H x W), C channels, h heads, L tokens.
"""

import torch
from torch import Tensor


def is_channel_major(pixels: Tensor) -> bool:
    """Whether the memory of ``(..., P, C)`` runs over the pixels first, as in a contiguous ``(N, C, H, W)`` map."""
    return pixels.stride(-1) > pixels.stride(-2)


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """``(..., P, C)`` to ``(..., h, P, C / h)``."""
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """``(..., h, P, C / h)`` to ``(..., P, C)``."""
    return x.transpose(-3, -2).flatten(-2)


def tokenize_attention(pixels: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """Where each token looks: ``softmax over P of (X W_A)``, transposed (paper, equations 1 and 2).

    Args:
        pixels: X, ``(N, P, C)``.
        queries: one filter a token, ``(L, C)`` for all samples alike or ``(N, L, C)``.
        num_heads: number of slices of the channels that attend on their own.
        scale: factor on the logits; 1 in the paper.

    Returns:
        ``(N, h, L, P)``; each row sums to one.
    """
    if num_heads == 1 and queries.dim() == 2 and not is_channel_major(pixels):  # one product for the whole batch
        return (pixels @ (queries * scale).T).softmax(dim=-2).transpose(-2, -1).unsqueeze(1)
    keys = split_heads(pixels, num_heads)  # N, h, P, C/h
    queries = split_heads(queries * scale, num_heads)  # N, h, L, C/h
    if is_channel_major(pixels):
        return (queries @ keys.transpose(-2, -1)).softmax(dim=-1)
    return (keys @ queries.transpose(-2, -1)).softmax(dim=-2).transpose(-2, -1)


def tokenize(pixels: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """Group the pixels into tokens, ``A^T X``. Arguments as in :func:`tokenize_attention`; returns ``(N, L, C)``."""
    attention = tokenize_attention(pixels, queries, num_heads, scale)  # N, h, L, P
    return merge_heads(attention @ split_heads(pixels, num_heads))


def project_attention(pixels: Tensor, keys: Tensor, scale: float = 1.0) -> Tensor:
    """Which tokens each pixel reads: ``softmax over L of (X W_Q)(T W_K)^T`` (paper, equation 4).

    Args:
        pixels: X, ``(N, P, C)``.
        keys: ``T W_K W_Q^T`` of each head, ``(N, h, L, C)``.
        scale: factor on the logits; 1 in the paper.

    Returns:
        ``(N, h, P, L)``; each row sums to one.
    """
    pixels, keys = pixels.unsqueeze(1), keys * scale  # N, 1, P, C and N, h, L, C
    if is_channel_major(pixels):
        return (keys @ pixels.transpose(-2, -1)).softmax(dim=-2).transpose(-2, -1)
    return (pixels @ keys.transpose(-2, -1)).softmax(dim=-1)


def project(pixels: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """What the pixels read from the tokens, without the residual.

    Args:
        pixels, keys, scale: as in :func:`project_attention`.
        values: tokens in the map's channels, ``(N, h, L, C / h)``.

    Returns:
        ``(N, P, C)``, in the memory order of ``pixels``.
    """
    attention = project_attention(pixels, keys, scale)  # N, h, P, L
    if is_channel_major(pixels):
        return (values.transpose(-2, -1) @ attention.transpose(-2, -1)).flatten(1, 2).transpose(1, 2)
    return merge_heads(attention @ values)


def project_onto(pixels: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """The pixels plus what they read: :func:`project` and its residual, in one pass where there is one head."""
    if keys.shape[1] > 1:
        return pixels + project(pixels, keys, values, scale)
    attention, values = project_attention(pixels, keys, scale).squeeze(1), values.squeeze(1)  # N, P, L and N, L, C
    if is_channel_major(pixels):
        transposed = (tensor.transpose(1, 2) for tensor in (pixels, values, attention))
        return torch.baddbmm(*transposed).transpose(1, 2)
    return torch.baddbmm(pixels, attention, values)
