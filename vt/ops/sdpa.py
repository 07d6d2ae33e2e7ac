"""The fused path: tokenizer and projector are one scaled-dot-product attention each, and no attention map is stored.

Tokenizer: query = token filters, key = value = pixels. Projector: query = pixels, key and value = tokens.
Letters as in ``plain.py``.
"""

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from .plain import merge_heads, split_heads


def tokenize(pixels: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.tokenize`."""
    pixels = split_heads(pixels, num_heads)  # N, h, P, C/h
    queries = split_heads(queries, num_heads).expand(pixels.shape[0], -1, -1, -1)  # N, h, L, C/h
    return merge_heads(scaled_dot_product_attention(queries, pixels, pixels, scale=scale))


def project(pixels: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.project`."""
    pixels = pixels.unsqueeze(1).expand(-1, keys.shape[1], -1, -1)  # N, h, P, C
    return merge_heads(scaled_dot_product_attention(pixels, keys, values, scale=scale))


def project_onto(pixels: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.project_onto`."""
    return pixels + project(pixels, keys, values, scale)
