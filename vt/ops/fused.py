"""The fast path on a CPU: hand-written forward and backward passes with few passes over the map.

Its results are those of the plain path. The differences in speed:

- Matrix products are oriented along the memory layout of the map, channels_last or contiguous; no copies are needed.
- The attention map is stored token by token, ``(N, L, P)``, for every layout of the map, so the softmax over tokens or
  over pixels runs along contiguous memory.
- The backward pass computes the gradient of the map in one product. For the tokenizer, ``A^T dT + S^T Q`` is one
  product with twice the tokens; for the projector, the residual is the summand of the product.
- Where a tokenized map is also projected onto, the gradient of the projection is the summand of the tokenizer's.
- Sums over all pixels of an image are computed in chunks, because a matrix product uses one thread for such a sum.

Letters: N batch, P pixels (H x W), C channels, L tokens; A attention ``(N, L, P)``, S gradient of its logits. Tokens,
queries, keys and values of several levels are stacked, ``(levels, N, L, C)``.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from .maps import Gradients, Levels, in_shape_of, is_channel_major, to_pixels

MOST_CHUNKS = 16  # per image
LEAST_PIXELS = 8192  # of an image on a CPU: with fewer, one product takes as long or less
ALIGNED = 8  # pixels of a chunk on a GPU: of other numbers its products are unaligned, and slower
GPU_CHUNKS = 128  # per batch on a GPU, to use all of its multiprocessors


def tokenize(queries: Tensor, levels: Levels) -> tuple[Tensor, ...]:
    """Compute tokens; arguments and results of the four functions as in :mod:`vt.ops.functions`."""
    pixels = [*map(to_pixels, levels)]
    columns = queries.mT.expand(-1, pixels[0].shape[0], -1, -1).unbind()
    attentions = [_softmax(logits, dim=2).contiguous() for logits in map(_logits, pixels, columns)]
    return _stack([*map(_sum_over_pixels, attentions, pixels)]), *attentions


def tokenize_gradients(
    queries: Tensor,
    levels: list[Tensor],
    saved: list[Tensor],
    gradient: Tensor,
    passed: Gradients,
    needs: Sequence[bool],
) -> Gradients:
    """Compute gradients of :func:`tokenize`. The lists are emptied."""
    both = torch.cat([gradient, queries.expand_as(gradient)], dim=2).unbind()  # of each level N, 2 L, C
    found, queries_gradients = [], []
    for columns, rows, onto, is_needed in zip(gradient.mT.unbind(), both, passed, needs[2:]):
        is_needed = is_needed or needs[1]
        x, attention = levels.pop(0), saved.pop(0)
        logits_gradient = _softmax_gradient(attention, _logits(to_pixels(x), columns), dim=2)
        if needs[0]:
            queries_gradients.append(_sum_over_pixels(logits_gradient, to_pixels(x)))
        skeleton = x.to('meta')
        del x  # frees its memory, if possible, before its gradient is allocated
        weights = torch.cat([attention, logits_gradient], dim=1).to(rows.dtype).mT if is_needed else None
        found.append(_products(weights, rows, skeleton, onto) if is_needed else None)
    of_queries = _stack(queries_gradients).sum_to_size(queries.shape) if needs[0] else None
    return of_queries, torch.stack([x.sum((0, 1)) for x in found]) if needs[1] else None, *found


def project(keys: Tensor, values: Tensor, residual: bool, levels: Levels) -> tuple[list[Tensor], list[Tensor]]:
    """Compute projections."""
    pixels = [*map(to_pixels, levels)]
    attention = _softmax(_join([*map(_logits, pixels, keys.mT.unbind())]), dim=1)  # N, L, sum of P
    weights = _split(attention.to(values.dtype), pixels)
    summands = pixels if residual else [None] * len(pixels)
    return [*map(_products, weights, values.unbind(), levels, summands)], [attention]


def project_gradients(
    keys: Tensor, values: Tensor, residual: bool, levels: Levels, saved: Levels, grads: Levels, needs: Sequence[bool]
) -> Gradients:
    """Compute gradients of :func:`project`."""
    pixels, (attention,) = [*map(to_pixels, grads)], saved
    logits_gradient = _softmax_gradient(attention, _join([*map(_logits, pixels, values.mT.unbind())]), dim=1)
    weights, attentions = (_split(each.to(keys.dtype), pixels) for each in (logits_gradient, attention))
    found = [None] * len(levels)
    for i, (rows, x) in enumerate(zip(keys.unbind(), levels)):
        if needs[2 + i]:
            found[i] = _products(weights[i], rows, x, pixels[i] if residual else None)
    keys_gradient = values_gradient = None
    if needs[0]:
        sums = [_sum_over_pixels(each.mT, to_pixels(x)) for each, x in zip(weights, levels)]
        keys_gradient = _stack(sums)
    if needs[1]:
        values_gradient = _stack([_sum_over_pixels(each.mT, x) for each, x in zip(attentions, pixels)])
    return keys_gradient, values_gradient, *found


def _logits(pixels: Tensor, columns: Tensor) -> Tensor:
    """Return the products of columns ``(N, C, L)`` with pixels, ``(N, L, P)``."""
    if is_channel_major(pixels):
        return torch.bmm(columns.mT, pixels.mT)
    return torch.bmm(pixels, columns).mT


def _stack(levels: Levels) -> Tensor:
    """Stack tokens of several levels; those of one are not copied."""
    return torch.stack(levels) if len(levels) > 1 else levels[0].unsqueeze(0)


def _join(levels: Levels) -> Tensor:
    """Join ``(N, L, P)`` of several levels along their pixels, stored token by token."""
    return torch.cat(levels, dim=2) if len(levels) > 1 else levels[0].contiguous()


def _split(joined: Tensor, levels: Levels) -> Sequence[Tensor]:
    """Split ``(N, L, sum of P)`` into ``(N, P, L)`` of each level."""
    return joined.mT.split([pixels.shape[1] for pixels in levels], dim=1)


def _softmax(logits: Tensor, dim: int) -> Tensor:
    """Softmax, in float32 or float64."""
    return logits.softmax(dim, dtype=torch.float64 if logits.dtype == torch.float64 else torch.float32)


def _softmax_gradient(attention: Tensor, grad: Tensor, dim: int) -> Tensor:
    """Return S from A and the gradient of A; the sum is computed in the precision of A."""
    weighted = attention * grad
    return weighted.addcmul_(attention, weighted.sum(dim, keepdim=True), value=-1)


def _sum_over_pixels(weights: Tensor, pixels: Tensor) -> Tensor:
    """Return weighted sums of pixels: ``(N, L, P)`` and ``(N, P, C)`` to ``(N, L, C)``."""
    weights = weights.to(pixels.dtype)
    chunks = _count_chunks(pixels)
    if chunks == 1:
        return torch.bmm(weights, pixels)
    parts = weights.unflatten(-1, (chunks, -1)).transpose(1, 2) @ pixels.unflatten(1, (chunks, -1))  # N, chunks, L, C
    return parts.sum(1)


def _count_chunks(pixels: Tensor) -> int:
    """Number of chunks of a sum over pixels; on a CPU, the images of a batch are already computed in parallel."""
    samples, num_pixels, _ = pixels.shape
    if not isinstance(num_pixels, int):  # a dynamic size, as in an exported program
        return 1
    if pixels.is_cuda:
        most, multiple = GPU_CHUNKS // max(1, samples), ALIGNED
    else:
        most, multiple = MOST_CHUNKS if samples == 1 and num_pixels >= LEAST_PIXELS else 1, 1
    most = max(1, min(most, MOST_CHUNKS))
    return max(chunks for chunks in range(1, most + 1) if num_pixels % (chunks * multiple) == 0 or chunks == 1)


def _products(weights: Tensor, rows: Tensor, like: Tensor, onto: Tensor | None) -> Tensor:
    """Return weighted sums of rows for each pixel, ``(N, P, L)`` and ``(N, L, C)``, in shape and layout of ``like``.

    It is not a view, so that autograd, holding the only reference, can accumulate into it in place. The sums are
    added to ``onto``, a map or pixels.
    """
    onto = None if onto is None else to_pixels(onto)
    if torch.compiler.is_compiling():  # PyTorch 2.11 loses the gradients of in-place writes in a forward pass
        return in_shape_of(like, weights @ rows if onto is None else onto + weights @ rows)
    if like.dim() == 3 and like.is_contiguous():
        return torch.bmm(weights, rows) if onto is None else torch.baddbmm(onto, weights, rows)
    result = _new_like(like, rows.device)
    _write_products(to_pixels(result), weights, rows, onto)
    return result


def _new_like(x: Tensor, device: torch.device) -> Tensor:
    """Return an empty tensor in the shape and layout of ``x``, channels_last or contiguous."""
    if x.dim() == 3:
        return torch.empty_like(x, device=device)
    channel_major = is_channel_major(to_pixels(x))
    memory_format = torch.contiguous_format if channel_major else torch.channels_last
    return torch.empty_like(x, device=device, memory_format=memory_format)


def _write_products(pixels: Tensor, weights: Tensor, rows: Tensor, onto: Tensor | None) -> None:
    """Write weighted sums of rows into pixels ``(N, P, C)``, added to ``onto`` if it is given."""
    factors = weights, rows
    if is_channel_major(pixels):
        pixels, factors, onto = pixels.mT, (rows.mT, weights.mT), None if onto is None else onto.mT
    if onto is None:
        torch.bmm(*factors, out=pixels)
    else:
        torch.baddbmm(onto, *factors, out=pixels)
