"""The plain path: equations 1, 2 and 4 of the paper and their attention maps; the reference of the other paths.

Matrices are applied to tokens instead of pixels: same result, cheaper, since
``(X W_Q)(T W_K)^T = X (T W_K W_Q^T)^T`` and ``A^T (X W_V) = (A^T X) W_V``.

Letters: N batch, P pixels (H x W), C channels, h heads, L tokens.
"""

from torch import Tensor

from .maps import in_shape_of, merge_heads, split_heads, to_pixels


def tokenize_attention(x: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """Attention of the tokens over the pixels: A of equations 1 and 2, ``softmax over P of (X W_A)``, transposed.

    Args:
        x: X, a map ``(N, C, H, W)`` or pixels ``(N, P, C)``.
        queries: one filter per token, ``(L, C)`` shared by all images (equation 1: W_A, transposed) or ``(N, L, C)``
            (equation 2: W_R).
        num_heads: h, number of slices of the channels with separate attention.
        scale: factor on the logits; 1 in the paper.

    Returns:
        Attention weights, ``(N, h, L, P)``, whose sum over P is one.
    """
    pixels, queries = split_heads(to_pixels(x), num_heads), split_heads(queries * scale, num_heads)
    logits = pixels @ queries.transpose(-2, -1)  # N, h, P, L
    return logits.softmax(dim=-2).transpose(-2, -1)


def tokenize(x: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """Compute tokens by equations 1 and 2, ``T = A^T X``.

    Arguments as in :func:`tokenize_attention`; returns tokens in the channels of the map, ``(N, L, C)``.
    """
    attention = tokenize_attention(x, queries, num_heads, scale)  # N, h, L, P
    return merge_heads(attention @ split_heads(to_pixels(x), num_heads))


def project_attention(x: Tensor, keys: Tensor, scale: float = 1.0) -> Tensor:
    """Attention of the pixels over the tokens: A of equation 4, ``softmax over L of (X W_Q)(T W_K)^T``.

    Args:
        x: X, a map ``(N, C, H, W)`` or pixels ``(N, P, C)``.
        keys: ``T W_K W_Q^T`` of each head, ``(N, h, L, C)``.
        scale: factor on the logits; 1 in the paper.

    Returns:
        Attention weights, ``(N, h, P, L)``, whose sum over L is one.
    """
    pixels = to_pixels(x).unsqueeze(1)  # N, 1, P, C
    return (pixels @ (keys * scale).transpose(-2, -1)).softmax(dim=-1)


def project(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """Project the tokens onto the pixels: equation 4 without its residual, ``A T``.

    Args:
        x: as in :func:`project_attention`.
        keys: as in :func:`project_attention`.
        values: T in the channels of the map, ``(N, h, L, C / h)``.
        scale: as in :func:`project_attention`.

    Returns:
        The projection, in the shape of ``x``.
    """
    return in_shape_of(x, merge_heads(project_attention(x, keys, scale) @ values))


def project_onto(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """Add the projection to the pixels: equation 4, ``X + A T``; arguments and shape as in :func:`project`."""
    return x + project(x, keys, values, scale)
