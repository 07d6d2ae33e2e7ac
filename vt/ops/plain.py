"""The plain path: equations 1, 2 and 4 of the paper as they stand, and their attention maps; the other paths' oracle.

Only this is rearranged: every pixel-side matrix is moved to the token side, which is exact, since
``(X W_Q)(T W_K)^T = X (T W_K W_Q^T)^T`` and ``A^T (X W_V) = (A^T X) W_V``. Pixels are never projected.

Letters: N batch, P pixels (H x W), C channels, h heads, L tokens.
"""

from torch import Tensor

from .maps import in_shape_of, merge_heads, split_heads, to_pixels


def tokenize_attention(x: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """Where each token looks: A of equations 1 and 2, ``softmax over P of (X W_A)``, transposed.

    Args:
        x: X, a map ``(N, C, H, W)`` or pixels ``(N, P, C)``.
        queries: one filter a token, ``(L, C)`` for all samples alike (equation 1: W_A, transposed) or ``(N, L, C)``
            (equation 2: W_R).
        num_heads: number of slices of the channels that attend on their own.
        scale: factor on the logits; 1 in the paper.

    Returns:
        ``(N, h, L, P)``; each row sums to one.
    """
    pixels, queries = split_heads(to_pixels(x), num_heads), split_heads(queries * scale, num_heads)
    logits = pixels @ queries.transpose(-2, -1)  # N, h, P, L
    return logits.softmax(dim=-2).transpose(-2, -1)


def tokenize(x: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """Group the pixels into tokens: equations 1 and 2, ``T = A^T X``.

    Arguments as in :func:`tokenize_attention`; returns ``(N, L, C)``.
    """
    attention = tokenize_attention(x, queries, num_heads, scale)  # N, h, L, P
    return merge_heads(attention @ split_heads(to_pixels(x), num_heads))


def project_attention(x: Tensor, keys: Tensor, scale: float = 1.0) -> Tensor:
    """Which tokens each pixel reads: A of equation 4, ``softmax over L of (X W_Q)(T W_K)^T``.

    Args:
        x: X, a map ``(N, C, H, W)`` or pixels ``(N, P, C)``.
        keys: ``T W_K W_Q^T`` of each head, ``(N, h, L, C)``.
        scale: factor on the logits; 1 in the paper.

    Returns:
        ``(N, h, P, L)``; each row sums to one.
    """
    pixels = to_pixels(x).unsqueeze(1)  # N, 1, P, C
    return (pixels @ (keys * scale).transpose(-2, -1)).softmax(dim=-1)


def project(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """What the pixels read from the tokens: equation 4 without its residual, ``A T``, in the shape of ``x``.

    Args:
        x, keys, scale: as in :func:`project_attention`.
        values: T in the map's channels, ``(N, h, L, C / h)``.
    """
    return in_shape_of(x, merge_heads(project_attention(x, keys, scale) @ values))


def project_onto(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """The pixels plus what they read: equation 4, ``X + A T``; arguments as in :func:`project`."""
    return x + project(x, keys, values, scale)
