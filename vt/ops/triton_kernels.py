"""Triton kernels for tokenize, project and their gradients; each reads the map once.

Maps are in 16 bits and channels_last, ``(N, P, C)`` in memory. Program ``(n, s)`` processes every S-th block of pixels
of sample n, starting at block s, and accumulates in registers in fp32. The results of the splits are combined in a
fixed order, without atomic sums, so runs are reproducible. Exponentials and logarithms have base two.

Letters: N samples, P pixels, C channels (a power of two), L tokens, S splits; BLOCK_P pixels per block; BLOCK_L is L
rounded up to a power of two, with masking.

Shapes: pixels, read and their gradients ``(N, P, C)``; tokens, queries, keys, values ``(N, L, C)``; log sums
``(N, L)``; results of the splits, including gradients of queries, keys and values, ``(N, S, L, C)`` and ``(N, S, L)``.
These, log sums and exact tokens are in fp32. All tensors are contiguous. Tokens are read as ``(C, L)``, because the
few tokens must be the columns of a matrix product. ``query_stride`` is L x C, or 0 if all samples share the queries.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def pixel_block(block, P, C: tl.constexpr, BLOCK_P: tl.constexpr):
    """Return offsets ``(BLOCK_P, C)`` and mask ``(BLOCK_P, 1)`` of a block of pixels of one sample."""
    pixels = (block * BLOCK_P + tl.arange(0, BLOCK_P))[:, None]
    return pixels * C + tl.arange(0, C)[None, :], pixels < P


@triton.jit
def token_block(C: tl.constexpr, L: tl.constexpr, BLOCK_L: tl.constexpr):
    """Return offsets ``(C, BLOCK_L)`` and mask ``(1, BLOCK_L)`` of the tokens of one sample."""
    tokens = tl.arange(0, BLOCK_L)[None, :]
    return tokens * C + tl.arange(0, C)[:, None], tokens < L


@triton.jit
def softmax_over_tokens(logits, L: tl.constexpr, BLOCK_L: tl.constexpr):
    """Softmax of base-two logits ``(BLOCK_P, BLOCK_L)`` over the first L columns."""
    logits = tl.where(tl.arange(0, BLOCK_L)[None, :] < L, logits, float('-inf'))
    exponentials = tl.exp2(logits - tl.max(logits, 1)[:, None])
    return exponentials / tl.sum(exponentials, 1)[:, None]


@triton.jit(do_not_specialize=['P'])
def tokenize_kernel(
    pixels, P, queries, query_stride, split_tokens, split_log_sums,
    C: tl.constexpr, L: tl.constexpr, BLOCK_L: tl.constexpr, BLOCK_P: tl.constexpr
):  # fmt: skip
    """Compute the tokens of each split's pixels by online softmax, and the logarithm of its sum of exponentials."""
    n, s, S = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    token_offsets, token_mask = token_block(C, L, BLOCK_L)
    q = tl.load(queries + n * query_stride + token_offsets, mask=token_mask, other=0.0)
    maxima = tl.full([BLOCK_L], float('-inf'), tl.float32)
    sums = tl.zeros([BLOCK_L], tl.float32)
    gathered = tl.zeros([C, BLOCK_L], tl.float32)
    for block in range(s, tl.cdiv(P, BLOCK_P), S):
        offsets, mask = pixel_block(block, P, C, BLOCK_P)
        x = tl.load(pixels + n * P * C + offsets, mask=mask, other=0.0)
        logits = tl.where(mask, tl.dot(x, q) * LOG2_E, float('-inf'))  # P, L
        new_maxima = tl.maximum(maxima, tl.max(logits, 0))
        shrink = tl.exp2(maxima - new_maxima)
        a = tl.exp2(logits - new_maxima[None, :])  # P, L
        sums = sums * shrink + tl.sum(a, 0)
        gathered = gathered * shrink[None, :] + tl.dot(tl.trans(x), a.to(x.dtype))
        maxima = new_maxima
    split, columns = n * S + s, tl.arange(0, BLOCK_L)
    tl.store(split_log_sums + split * L + columns, maxima + tl.log2(sums), mask=columns < L)
    tl.store(split_tokens + split * L * C + token_offsets, gathered / sums[None, :], mask=token_mask)


@triton.jit(do_not_specialize=['S'])
def combine_kernel(
    split_tokens, split_log_sums, S, tokens, exact_tokens, log_sums,
    C: tl.constexpr, L: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_C: tl.constexpr
):  # fmt: skip
    """Combine the tokens of the splits, weighted by their sums of exponentials."""
    n, token = tl.program_id(0).to(tl.int64), tl.program_id(1)
    channels = tl.program_id(2) * BLOCK_C + tl.arange(0, BLOCK_C)
    maximum, total, gathered = float('-inf'), 0.0, tl.zeros([BLOCK_C], tl.float32)
    for first in range(0, S, BLOCK_S):
        splits = first + tl.arange(0, BLOCK_S)
        rows = (n * S + splits) * L + token
        logs = tl.load(split_log_sums + rows, mask=splits < S, other=float('-inf'))
        parts = tl.load(split_tokens + rows[:, None] * C + channels[None, :], mask=(splits < S)[:, None], other=0.0)
        new_maximum = tl.maximum(maximum, tl.max(logs, 0))
        shrink, weights = tl.exp2(maximum - new_maximum), tl.exp2(logs - new_maximum)
        total = total * shrink + tl.sum(weights, 0)
        gathered = gathered * shrink + tl.sum(parts * weights[:, None], 0)
        maximum = new_maximum
    row = n * L + token
    tl.store(exact_tokens + row * C + channels, gathered / total)
    tl.store(tokens + row * C + channels, gathered / total)
    tl.store(log_sums + row, maximum + tl.log2(total), mask=tl.program_id(2) == 0)


@triton.jit(do_not_specialize=['P'])
def project_kernel(
    pixels, P, keys, values, read, RESIDUAL: tl.constexpr,
    C: tl.constexpr, L: tl.constexpr, BLOCK_L: tl.constexpr, BLOCK_P: tl.constexpr
):  # fmt: skip
    """Compute the projection A V for each pixel; with RESIDUAL add the pixel."""
    n, s, S = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    token_offsets, token_mask = token_block(C, L, BLOCK_L)
    k = tl.load(keys + n * L * C + token_offsets, mask=token_mask, other=0.0)
    v = tl.load(values + n * L * C + token_offsets, mask=token_mask, other=0.0)
    for block in range(s, tl.cdiv(P, BLOCK_P), S):
        offsets, mask = pixel_block(block, P, C, BLOCK_P)
        x = tl.load(pixels + n * P * C + offsets, mask=mask, other=0.0)
        a = softmax_over_tokens(tl.dot(x, k) * LOG2_E, L, BLOCK_L)  # P, L
        y = tl.dot(a.to(x.dtype), tl.trans(v))
        if RESIDUAL:
            y += x.to(tl.float32)
        tl.store(read + n * P * C + offsets, y, mask=mask)


@triton.jit(do_not_specialize=['P'])
def tokenize_backward_kernel(
    pixels, P, queries, query_stride, exact_tokens, log_sums, token_gradients, pixel_gradients, query_gradients,
    OF_PIXELS: tl.constexpr, OF_TOKENS: tl.constexpr,
    C: tl.constexpr, L: tl.constexpr, BLOCK_L: tl.constexpr, BLOCK_P: tl.constexpr
):  # fmt: skip
    """With dT the gradient of T = A^T X: dX = A dT + dS Q and dQ = dS^T X, where dS = A (X dT^T - T.dT).

    OF_PIXELS and OF_TOKENS select dX and dQ.
    """
    n, s, S = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    token_offsets, token_mask = token_block(C, L, BLOCK_L)
    columns = tl.arange(0, BLOCK_L)
    q = tl.load(queries + n * query_stride + token_offsets, mask=token_mask, other=0.0)
    dt = tl.load(token_gradients + n * L * C + token_offsets, mask=token_mask, other=0.0)
    t = tl.load(exact_tokens + n * L * C + token_offsets, mask=token_mask, other=0.0)
    t_dt = tl.sum(t * dt.to(tl.float32), 0)  # L
    logs = tl.load(log_sums + n * L + columns, mask=columns < L, other=float('inf'))
    dq = tl.zeros([C, BLOCK_L], tl.float32)
    for block in range(s, tl.cdiv(P, BLOCK_P), S):
        offsets, mask = pixel_block(block, P, C, BLOCK_P)
        x = tl.load(pixels + n * P * C + offsets, mask=mask, other=0.0)
        a = tl.where(mask, tl.exp2(tl.dot(x, q) * LOG2_E - logs[None, :]), 0.0)  # P, L
        ds = (a * (tl.dot(x, dt) - t_dt[None, :])).to(x.dtype)
        if OF_PIXELS:
            dx = tl.dot(a.to(x.dtype), tl.trans(dt))
            dx = tl.dot(ds, tl.trans(q), dx)
            tl.store(pixel_gradients + n * P * C + offsets, dx, mask=mask)
        if OF_TOKENS:
            dq = tl.dot(tl.trans(x), ds, dq)
    if OF_TOKENS:
        tl.store(query_gradients + (n * S + s) * L * C + token_offsets, dq, mask=token_mask)


@triton.jit(do_not_specialize=['P'])
def project_backward_kernel(
    pixels, P, keys, values, read_gradients, pixel_gradients, key_gradients, value_gradients,
    RESIDUAL: tl.constexpr, OF_PIXELS: tl.constexpr, OF_TOKENS: tl.constexpr,
    C: tl.constexpr, L: tl.constexpr, BLOCK_L: tl.constexpr, BLOCK_P: tl.constexpr
):  # fmt: skip
    """With dY the gradient of Y = A V: dX = dS K, dK = dS^T X and dV = A^T dY, where dA = dY V^T and
    dS = A (dA - sum over L of A dA); with RESIDUAL, dY is added to dX.

    OF_PIXELS selects dX; OF_TOKENS selects dK and dV.
    """
    n, s, S = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    token_offsets, token_mask = token_block(C, L, BLOCK_L)
    k = tl.load(keys + n * L * C + token_offsets, mask=token_mask, other=0.0)
    v = tl.load(values + n * L * C + token_offsets, mask=token_mask, other=0.0)
    dk = tl.zeros([C, BLOCK_L], tl.float32)
    dv = tl.zeros([C, BLOCK_L], tl.float32)
    for block in range(s, tl.cdiv(P, BLOCK_P), S):
        offsets, mask = pixel_block(block, P, C, BLOCK_P)
        x = tl.load(pixels + n * P * C + offsets, mask=mask, other=0.0)
        dy = tl.load(read_gradients + n * P * C + offsets, mask=mask, other=0.0)
        a = softmax_over_tokens(tl.dot(x, k) * LOG2_E, L, BLOCK_L)  # P, L
        da = tl.dot(dy, v)  # P, L
        ds = (a * (da - tl.sum(a * da, 1)[:, None])).to(x.dtype)
        if OF_PIXELS:
            dx = tl.dot(ds, tl.trans(k))
            if RESIDUAL:
                dx += dy.to(tl.float32)
            tl.store(pixel_gradients + n * P * C + offsets, dx, mask=mask)
        if OF_TOKENS:
            dk = tl.dot(tl.trans(x), ds, dk)
            dv = tl.dot(tl.trans(dy), a.to(x.dtype), dv)
    if OF_TOKENS:
        split = (n * S + s) * L * C
        tl.store(key_gradients + split + token_offsets, dk, mask=token_mask)
        tl.store(value_gradients + split + token_offsets, dv, mask=token_mask)
