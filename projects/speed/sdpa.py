"""The path ``'sdpa'`` of :mod:`vt.ops`: tokenizer and projector as one ``scaled_dot_product_attention`` each.

On a GPU in half precision this is flash attention, which does not store the attention map. Tokenizer: query = token
filters, key = value = pixels. Projector: query = pixels, key and value = tokens. No measurement shows that it is
faster, so it is not among VT's own paths; importing this file adds it. Letters as in ``vt/ops/plain.py``.
"""

import sys

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from vt.ops.dispatch import PATHS
from vt.ops.maps import in_shape_of, merge_heads, split_heads, to_pixels


def tokenize(x: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.tokenize`."""
    pixels = split_heads(to_pixels(x), num_heads)  # N, h, P, C/h
    queries = split_heads(queries, num_heads).expand(pixels.shape[0], -1, -1, -1)  # N, h, L, C/h
    return merge_heads(scaled_dot_product_attention(queries, pixels, pixels, scale=scale))


def project(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.project`."""
    pixels = to_pixels(x).unsqueeze(1).expand(-1, keys.shape[1], -1, -1)  # N, h, P, C
    return in_shape_of(x, merge_heads(scaled_dot_product_attention(pixels, keys, values, scale=scale)))


def project_onto(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.project_onto`."""
    return x + project(x, keys, values, scale)


NAME = 'sdpa'
PATHS[NAME] = sys.modules[__name__]
