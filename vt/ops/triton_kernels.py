"""Triton kernels for tokenize, project and their gradients; each reads the maps once.

A launch processes up to four levels, whose maps are in 16 bits and channels_last, ``(N, P, C)`` in memory. The programs
of a sample are divided among the levels, one for each ``span`` pixels: program ``(n, s)`` processes every S-th block of
pixels of sample n, starting at block s of its level, and accumulates in registers in fp32. The results of the splits
are combined in a fixed order, without atomic sums, so runs are reproducible. Exponentials and logarithms have base two.

Letters: N samples, P pixels of a level, C channels (a power of two), L tokens, S splits of a level, T splits of all
levels; BLOCK_P pixels per block; BLOCK_L is L rounded up to a power of two, with masking.

Shapes: pixels, read and their gradients ``(N, P, C)``, an argument for each level (with fewer than four levels any
tensor, and P = 0); tokens, keys, values ``(levels, N, L, C)``; queries ``(levels, Q, L, C)``, Q being N, or 1 if all
samples share them; log sums ``(levels, N, L)``; results of the splits, including gradients of queries, keys and values,
``(N, T, L, C)`` and ``(N, T, L)``. These, log sums and exact tokens are in fp32. All tensors are contiguous. Tokens are
read as ``(C, L)``, because the few tokens must be the columns of a matrix product.
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


@triton.jit
def pick(level, first, second, third, fourth):
    """The pointer of a level."""
    if level == 1:
        first = second
    if level == 2:
        first = third
    if level == 3:
        first = fourth
    return first


@triton.jit
def level_of(split, P0, P1, P2, span):
    """The level of one of all splits."""
    end0 = (P0 + span - 1) // span
    end1 = end0 + (P1 + span - 1) // span
    end2 = end1 + (P2 + span - 1) // span
    return (split >= end0).to(tl.int32) + (split >= end1).to(tl.int32) + (split >= end2).to(tl.int32)


@triton.jit
def splits_of(level, P0, P1, P2, P3, span):
    """Return the first of a level's splits among those of all levels, their number, and the pixels of the level."""
    first, P = 0 * span, P0
    if level > 0:
        first, P = (P0 + span - 1) // span, P1
    if level > 1:
        first, P = first + (P1 + span - 1) // span, P2
    if level > 2:
        first, P = first + (P2 + span - 1) // span, P3
    return first, (P + span - 1) // span, P


@triton.jit(do_not_specialize=['P0', 'P1', 'P2', 'P3', 'span', 'Q'])
def tokenize_kernel(
    x0, x1, x2, x3, P0, P1, P2, P3, span, queries, Q, split_tokens, split_log_sums,
    C: tl.constexpr, L: tl.constexpr, BLOCK_L: tl.constexpr, BLOCK_P: tl.constexpr
):  # fmt: skip
    """Compute the tokens of each split's pixels by online softmax, and the logarithm of its sum of exponentials."""
    n, T = tl.program_id(0).to(tl.int64), tl.num_programs(1)
    level = level_of(tl.program_id(1), P0, P1, P2, span)
    first, S, P = splits_of(level, P0, P1, P2, P3, span)
    pixels = pick(level, x0, x1, x2, x3) + n * P * C
    token_offsets, token_mask = token_block(C, L, BLOCK_L)
    q = tl.load(queries + (level * Q + n % Q) * L * C + token_offsets, mask=token_mask, other=0.0)
    maxima = tl.full([BLOCK_L], float('-inf'), tl.float32)
    sums = tl.zeros([BLOCK_L], tl.float32)
    gathered = tl.zeros([C, BLOCK_L], tl.float32)
    for block in range(tl.program_id(1) - first, tl.cdiv(P, BLOCK_P), S):
        offsets, mask = pixel_block(block, P, C, BLOCK_P)
        x = tl.load(pixels + offsets, mask=mask, other=0.0)
        logits = tl.where(mask, tl.dot(x, q) * LOG2_E, float('-inf'))  # P, L
        new_maxima = tl.maximum(maxima, tl.max(logits, 0))
        shrink = tl.exp2(maxima - new_maxima)
        a = tl.exp2(logits - new_maxima[None, :])  # P, L
        sums = sums * shrink + tl.sum(a, 0)
        gathered = gathered * shrink[None, :] + tl.dot(tl.trans(x), a.to(x.dtype))
        maxima = new_maxima
    split, columns = n * T + tl.program_id(1), tl.arange(0, BLOCK_L)
    tl.store(split_log_sums + split * L + columns, maxima + tl.log2(sums), mask=columns < L)
    tl.store(split_tokens + split * L * C + token_offsets, gathered / sums[None, :], mask=token_mask)


@triton.jit(do_not_specialize=['P0', 'P1', 'P2', 'P3', 'span', 'N', 'T', 'levels'])
def combine_kernel(
    split_results, split_log_sums, P0, P1, P2, P3, span, N, T, levels, results, exact_results, log_sums,
    WEIGHTED: tl.constexpr, C: tl.constexpr, L: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_C: tl.constexpr
):  # fmt: skip
    """Add the results of the splits, ``(kinds, N, T, L, C)``, for each level, to ``(kinds, levels, N, L, C)``.

    With WEIGHTED they are tokens, of which the mean is computed, weighted by their sums of exponentials.
    """
    image, token = (tl.program_id(0) // N // levels * N + tl.program_id(0) % N).to(tl.int64), tl.program_id(1)
    begin, S, _ = splits_of(tl.program_id(0) // N % levels, P0, P1, P2, P3, span)
    channels = tl.program_id(2) * BLOCK_C + tl.arange(0, BLOCK_C)
    maximum, total, gathered = float('-inf'), 0.0, tl.zeros([BLOCK_C], tl.float32)
    for first in range(0, S, BLOCK_S):
        splits = first + tl.arange(0, BLOCK_S)
        rows = (image * T + begin + splits) * L + token
        parts = tl.load(split_results + rows[:, None] * C + channels[None, :], mask=(splits < S)[:, None], other=0.0)
        if WEIGHTED:
            logs = tl.load(split_log_sums + rows, mask=splits < S, other=float('-inf'))
            new_maximum = tl.maximum(maximum, tl.max(logs, 0))
            shrink, weights = tl.exp2(maximum - new_maximum), tl.exp2(logs - new_maximum)
            total = total * shrink + tl.sum(weights, 0)
            gathered, parts = gathered * shrink, parts * weights[:, None]
            maximum = new_maximum
        gathered += tl.sum(parts, 0)
    row = tl.program_id(0) * L + token
    if WEIGHTED:
        gathered = gathered / total
        tl.store(exact_results + row * C + channels, gathered)
        tl.store(log_sums + row, maximum + tl.log2(total), mask=tl.program_id(2) == 0)
    tl.store(results + row * C + channels, gathered)


@triton.jit(do_not_specialize=['P0', 'P1', 'P2', 'P3', 'span'])
def project_kernel(
    x0, x1, x2, x3, P0, P1, P2, P3, span, keys, values, y0, y1, y2, y3, RESIDUAL: tl.constexpr,
    C: tl.constexpr, L: tl.constexpr, BLOCK_L: tl.constexpr, BLOCK_P: tl.constexpr
):  # fmt: skip
    """Compute the projection A V for each pixel; with RESIDUAL add the pixel."""
    n, N = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    level = level_of(tl.program_id(1), P0, P1, P2, span)
    first, S, P = splits_of(level, P0, P1, P2, P3, span)
    pixels, read = pick(level, x0, x1, x2, x3) + n * P * C, pick(level, y0, y1, y2, y3) + n * P * C
    token_offsets, token_mask = token_block(C, L, BLOCK_L)
    token_offsets += (level * N + n) * L * C
    k = tl.load(keys + token_offsets, mask=token_mask, other=0.0)
    v = tl.load(values + token_offsets, mask=token_mask, other=0.0)
    for block in range(tl.program_id(1) - first, tl.cdiv(P, BLOCK_P), S):
        offsets, mask = pixel_block(block, P, C, BLOCK_P)
        x = tl.load(pixels + offsets, mask=mask, other=0.0)
        a = softmax_over_tokens(tl.dot(x, k) * LOG2_E, L, BLOCK_L)  # P, L
        y = tl.dot(a.to(x.dtype), tl.trans(v))
        if RESIDUAL:
            y += x.to(tl.float32)
        tl.store(read + offsets, y, mask=mask)


@triton.jit(do_not_specialize=['P0', 'P1', 'P2', 'P3', 'span', 'Q'])
def tokenize_backward_kernel(
    x0, x1, x2, x3, P0, P1, P2, P3, span, queries, Q, exact_tokens, log_sums, token_gradients, g0, g1, g2, g3,
    dx0, dx1, dx2, dx3, query_gradients, sums, ONTO: tl.constexpr,
    C: tl.constexpr, L: tl.constexpr, BLOCK_L: tl.constexpr, BLOCK_P: tl.constexpr
):  # fmt: skip
    """With dT the gradient of T = A^T X: dX = A dT + dS Q and dQ = dS^T X, where dS = A (X dT^T - T.dT).

    With ONTO, another gradient of X, g, is added to dX. ``sums``, ``(N, T, C)``, are of dX over the pixels. In fp16, A,
    about 1 / P, would be subnormal for many pixels, so it is multiplied by a power of two.
    """
    n, N, T = tl.program_id(0).to(tl.int64), tl.num_programs(0), tl.num_programs(1)
    level = level_of(tl.program_id(1), P0, P1, P2, span)
    first, S, P = splits_of(level, P0, P1, P2, P3, span)
    pixels, pixel_gradients = pick(level, x0, x1, x2, x3) + n * P * C, pick(level, dx0, dx1, dx2, dx3) + n * P * C
    others, row = pick(level, g0, g1, g2, g3) + n * P * C, (level * N + n) * L
    token_offsets, token_mask = token_block(C, L, BLOCK_L)
    columns = tl.arange(0, BLOCK_L)
    q = tl.load(queries + (level * Q + n % Q) * L * C + token_offsets, mask=token_mask, other=0.0)
    dt = tl.load(token_gradients + row * C + token_offsets, mask=token_mask, other=0.0)
    t = tl.load(exact_tokens + row * C + token_offsets, mask=token_mask, other=0.0)
    t_dt = tl.sum(t * dt.to(tl.float32), 0)  # L
    logs = tl.load(log_sums + row + columns, mask=columns < L, other=float('inf'))
    power = 1.0
    if q.dtype == tl.float16:  # with A up to 1, and finite up to P = 2^22
        power = tl.exp2(tl.maximum(tl.floor(tl.log2(P.to(tl.float32))) - 6, 0.0))
    dq = tl.zeros([C, BLOCK_L], tl.float32)
    total = tl.zeros([C], tl.float32)
    for block in range(tl.program_id(1) - first, tl.cdiv(P, BLOCK_P), S):
        offsets, mask = pixel_block(block, P, C, BLOCK_P)
        x = tl.load(pixels + offsets, mask=mask, other=0.0)
        a = tl.where(mask, tl.exp2(tl.dot(x, q) * LOG2_E - logs[None, :]), 0.0)  # P, L
        ds = (a * (tl.dot(x, dt) - t_dt[None, :])).to(x.dtype)
        dq = tl.dot(tl.trans(x), ds, dq)
        dx = tl.dot((a * power).to(x.dtype), tl.trans(dt)) / power
        dx = tl.dot(ds, tl.trans(q), dx)
        if ONTO:
            dx += tl.load(others + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(pixel_gradients + offsets, dx, mask=mask)
        total += tl.sum(dx, 0)  # zero in masked pixels
    split = n * T + tl.program_id(1)
    tl.store(query_gradients + split * L * C + token_offsets, dq, mask=token_mask)
    tl.store(sums + split * C + tl.arange(0, C), total)


@triton.jit(do_not_specialize=['P0', 'P1', 'P2', 'P3', 'span'])
def project_backward_kernel(
    x0, x1, x2, x3, P0, P1, P2, P3, span, keys, values, dy0, dy1, dy2, dy3, dx0, dx1, dx2, dx3,
    key_gradients, value_gradients, RESIDUAL: tl.constexpr,
    C: tl.constexpr, L: tl.constexpr, BLOCK_L: tl.constexpr, BLOCK_P: tl.constexpr
):  # fmt: skip
    """With dY the gradient of Y = A V: dX = dS K, dK = dS^T X and dV = A^T dY.

    Here dA = dY V^T and dS = A (dA - sum over L of A dA); with RESIDUAL, dY is added to dX.
    """
    n, N, T = tl.program_id(0).to(tl.int64), tl.num_programs(0), tl.num_programs(1)
    level = level_of(tl.program_id(1), P0, P1, P2, span)
    first, S, P = splits_of(level, P0, P1, P2, P3, span)
    pixels, read_gradients = pick(level, x0, x1, x2, x3) + n * P * C, pick(level, dy0, dy1, dy2, dy3) + n * P * C
    pixel_gradients = pick(level, dx0, dx1, dx2, dx3) + n * P * C
    token_offsets, token_mask = token_block(C, L, BLOCK_L)
    k = tl.load(keys + (level * N + n) * L * C + token_offsets, mask=token_mask, other=0.0)
    v = tl.load(values + (level * N + n) * L * C + token_offsets, mask=token_mask, other=0.0)
    dk = tl.zeros([C, BLOCK_L], tl.float32)
    dv = tl.zeros([C, BLOCK_L], tl.float32)
    for block in range(tl.program_id(1) - first, tl.cdiv(P, BLOCK_P), S):
        offsets, mask = pixel_block(block, P, C, BLOCK_P)
        x = tl.load(pixels + offsets, mask=mask, other=0.0)
        dy = tl.load(read_gradients + offsets, mask=mask, other=0.0)
        a = softmax_over_tokens(tl.dot(x, k) * LOG2_E, L, BLOCK_L)  # P, L
        da = tl.dot(dy, v)  # P, L
        ds = (a * (da - tl.sum(a * da, 1)[:, None])).to(x.dtype)
        dx = tl.dot(ds, tl.trans(k))
        if RESIDUAL:
            dx += dy.to(tl.float32)
        tl.store(pixel_gradients + offsets, dx, mask=mask)
        dk = tl.dot(tl.trans(x), ds, dk)
        dv = tl.dot(tl.trans(dy), a.to(x.dtype), dv)
    split = (n * T + tl.program_id(1)) * L * C
    tl.store(key_gradients + split + token_offsets, dk, mask=token_mask)
    tl.store(value_gradients + split + token_offsets, dv, mask=token_mask)
