"""The fast path on a CPU: forward and backward by hand, in as few passes over the map as matrix products allow.

What it saves over the plain path, which computes the same:

- Products are written in the orientation that reads and writes the map's memory in order, pixel by pixel
  (channels_last) or channel by channel: nothing is copied or reordered.
- The attention map lies token by token, ``(N, L, P)``, whatever the map's memory order: a softmax over few tokens or
  over many pixels then runs along contiguous memory.
- A backward pass writes the map's gradient in one product. That of a softmax with the pixels as values,
  ``A^T dT + S^T Q``, is one product of twice the tokens; the projector's residual enters its product as the summand.
- Products that sum over all pixels of one image do so in chunks: a matrix product has one thread sum over them alone.
- Where that is asked for, the skinniest products are loops of PyTorch's compiler: :mod:`vt.ops.compiled`.

Several heads are left to the plain path, and so are gradients of gradients.

Letters: N batch, P pixels (H x W), C channels, L tokens; A attention ``(N, L, P)``, S gradient of its logits.
"""

import torch
from torch import Tensor

from . import compiled, plain
from .maps import in_shape_of, is_channel_major, scaled, to_pixels
from .second_order import differentiable_gradients, of_one_head

MOST_CHUNKS = 16  # of an image
GPU_CHUNKS = 128  # of a batch on a GPU, whose processors would wait otherwise


def tokenize(x: Tensor, queries: Tensor, num_heads: int = 1, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.tokenize`."""
    if num_heads > 1:
        return plain.tokenize(x, queries, num_heads, scale)
    return _Tokenize.apply(x, scaled(queries, scale))[0]


def project(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.project`."""
    if keys.shape[1] > 1:
        return plain.project(x, keys, values, scale)
    return _Project.apply(x, scaled(keys, scale).squeeze(1), values.squeeze(1), False)[0]


def project_onto(x: Tensor, keys: Tensor, values: Tensor, scale: float = 1.0) -> Tensor:
    """As :func:`vt.ops.plain.project_onto`."""
    if keys.shape[1] > 1:
        return plain.project_onto(x, keys, values, scale)
    return _Project.apply(x, scaled(keys, scale).squeeze(1), values.squeeze(1), True)[0]


class _Tokenize(torch.autograd.Function):
    """``x`` and queries ``(L, C)`` or ``(N, L, C)`` to tokens ``(N, L, C)`` and A."""

    @staticmethod
    def forward(x: Tensor, queries: Tensor) -> tuple[Tensor, Tensor]:
        pixels = to_pixels(x)
        attention = _softmax(_logits(pixels, queries), dim=2)
        return _sum_over_pixels(attention, pixels), attention

    @staticmethod
    def setup_context(ctx, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(*inputs, output[1])
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, grad: Tensor | None, _: None) -> tuple[Tensor | None, Tensor | None]:
        if grad is None:
            return None, None
        x, queries, attention = ctx.saved_tensors
        if torch.is_grad_enabled():
            return differentiable_gradients(plain.tokenize, (x, queries), grad)
        logits_grad = _softmax_gradient(attention, _logits(to_pixels(x), grad), dim=2)
        x_grad = queries_grad = None
        if ctx.needs_input_grad[1]:
            queries_grad = _sum_over_pixels(logits_grad, to_pixels(x)).sum_to_size(queries.shape)
        if ctx.needs_input_grad[0]:
            skeleton = x.to('meta')
            if not torch.compiler.is_compiling():
                del x  # its memory may be free before its gradient takes as much
                ctx.maybe_clear_saved_tensors()
            x_grad = _new_like(skeleton, grad.device)
            rows = torch.cat([grad, queries.expand_as(grad)], dim=1)  # N, 2 L, C
            _add_products(to_pixels(x_grad), torch.cat([attention, logits_grad], dim=1), rows, beta=0)
        return x_grad, queries_grad


class _Project(torch.autograd.Function):
    """``x``, keys and values ``(N, L, C)`` to what the pixels read, in the shape of ``x``, and A."""

    @staticmethod
    def forward(x: Tensor, keys: Tensor, values: Tensor, residual: bool) -> tuple[Tensor, Tensor]:
        attention = _softmax(_logits(to_pixels(x), keys), dim=1)
        return _products(attention, values, like=x, onto=x if residual else None), attention

    @staticmethod
    def setup_context(ctx, inputs: tuple[Tensor, Tensor, Tensor, bool], output: tuple[Tensor, Tensor]) -> None:
        *tensors, ctx.residual = inputs
        ctx.save_for_backward(*tensors, output[1])
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, grad: Tensor | None, _: None) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        if grad is None:
            return None, None, None, None
        x, keys, values, attention = ctx.saved_tensors
        if torch.is_grad_enabled():
            function = plain.project_onto if ctx.residual else plain.project
            return *differentiable_gradients(of_one_head(function), (x, keys, values), grad), None
        x_grad = keys_grad = values_grad = None
        logits_grad = _softmax_gradient(attention, _logits(to_pixels(grad), values), dim=1)
        if ctx.needs_input_grad[0]:
            x_grad = _products(logits_grad, keys, like=x, onto=grad if ctx.residual else None)
        if ctx.needs_input_grad[1]:
            keys_grad = _sum_over_pixels(logits_grad, to_pixels(x))
        if ctx.needs_input_grad[2]:
            values_grad = _sum_over_pixels(attention, to_pixels(grad))
        return x_grad, keys_grad, values_grad, None


def _logits(pixels: Tensor, rows: Tensor) -> Tensor:
    """Products of each row ``(L, C)`` or ``(N, L, C)`` with each pixel, ``(N, L, P)``, contiguous."""
    if is_channel_major(pixels):
        return rows.expand(pixels.shape[0], -1, -1) @ pixels.transpose(1, 2)
    if compiled.compiles(pixels):
        return compiled.logits(pixels, rows)
    return (pixels @ rows.transpose(-2, -1)).transpose(1, 2).contiguous()


def _softmax(logits: Tensor, dim: int) -> Tensor:
    """Softmax, in single precision at least."""
    return logits.softmax(dim, dtype=torch.promote_types(logits.dtype, torch.float32))


def _softmax_gradient(attention: Tensor, grad: Tensor, dim: int) -> Tensor:
    """S from A and the gradient of A; its sum over the softmax is taken in the precision of A."""
    weighted = attention * grad
    return weighted.addcmul_(attention, weighted.sum(dim, keepdim=True), value=-1)


def _sum_over_pixels(weights: Tensor, pixels: Tensor) -> Tensor:
    """Weighted sums of pixels: ``(N, L, P)`` and ``(N, P, C)`` to ``(N, L, C)``."""
    weights = weights.to(pixels.dtype)
    chunks = _count_chunks(pixels)
    if chunks == 1:
        return weights @ pixels
    parts = weights.unflatten(-1, (chunks, -1)).transpose(1, 2) @ pixels.unflatten(1, (chunks, -1))  # N, chunks, L, C
    return parts.sum(1)


def _count_chunks(pixels: Tensor) -> int:
    """In how many chunks to sum over the pixels; on a CPU samples of a batch are summed side by side anyway."""
    samples, num_pixels, _ = pixels.shape
    if not isinstance(num_pixels, int):  # a size that is left open, as in an exported program
        return 1
    most = MOST_CHUNKS if samples == 1 else GPU_CHUNKS // samples if pixels.is_cuda else 1
    most = max(1, min(most, MOST_CHUNKS))
    return max(chunks for chunks in range(1, most + 1) if num_pixels % chunks == 0)


def _products(weights: Tensor, rows: Tensor, like: Tensor, onto: Tensor | None) -> Tensor:
    """Weighted sums of rows for each pixel, ``(N, L, P)`` and ``(N, L, C)`` to the shape and layout of ``like``.

    Args:
        onto: what they are added to, in the same shape.
    """
    if torch.compiler.is_compiling():  # PyTorch 2.11 loses the gradients of what a forward pass writes in place
        read = weights.to(rows.dtype).transpose(1, 2) @ rows
        return in_shape_of(like, read if onto is None else to_pixels(onto) + read)
    result = _new_like(like, rows.device)
    if onto is not None and compiled.compiles(to_pixels(onto), to_pixels(result)):
        compiled.add_products(weights.to(rows.dtype), rows, to_pixels(onto), to_pixels(result))
        return result
    if onto is not None:
        result.copy_(onto)
    _add_products(to_pixels(result), weights, rows, beta=0 if onto is None else 1)
    return result


def _new_like(x: Tensor, device: torch.device) -> Tensor:
    """An empty tensor in the shape of ``x``, pixel by pixel in memory or channel by channel, as ``x`` is.

    No view of another one: autograd adds up in place what it holds the only reference to.
    """
    if x.dim() == 3:
        return torch.empty_like(x, device=device)
    channel_major = is_channel_major(to_pixels(x))
    memory_format = torch.contiguous_format if channel_major else torch.channels_last
    return torch.empty_like(x, device=device, memory_format=memory_format)


def _add_products(pixels: Tensor, weights: Tensor, rows: Tensor, beta: int = 1) -> None:
    """Add to pixels ``(N, P, C)``, or with ``beta=0`` write into them, the weighted sums of rows."""
    weights = weights.to(rows.dtype)
    if is_channel_major(pixels):
        pixels.transpose(1, 2).baddbmm_(rows.transpose(1, 2), weights, beta=beta)
    else:
        pixels.baddbmm_(weights.transpose(1, 2), rows, beta=beta)
