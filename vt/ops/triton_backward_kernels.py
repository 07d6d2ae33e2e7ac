"""The gradients of tokenize and project as Triton kernels. Letters and layout as in ``triton_kernels.py``.

Each reads the map once: the sums over the pixels stay in registers, which limits L x C (``triton_sizes.py``).
"""

import triton
import triton.language as tl

from .triton_kernels import LOG2_E, UNSPECIALIZED, map_block, softmax_over_tokens, token_block


@triton.jit(do_not_specialize=UNSPECIALIZED)
def tokenize_backward_kernel(
    pixels,  # N, P, C
    queries,  # N, L, C or L, C
    tokens,  # N, L, C
    log_sums,  # N, L
    token_gradients,  # N, L, C
    pixel_gradients,  # N, P, C
    query_gradients,  # N, S, L, C
    P,
    size_class,
    scale,
    query_stride,
    C: tl.constexpr,
    L: tl.constexpr,
    PIXEL_MAJOR: tl.constexpr,
    ALIGNMENT: tl.constexpr,
    RELOAD: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_L: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    """With dT the gradient of T = A^T X: dX = A dT + dS Q and dQ = dS^T X, where dS = scale * A (X dT^T - T.dT).

    RELOAD reads the tokens again for every block, which spares the registers that would hold them.
    """
    n, s, S = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    token_offsets, token_mask = token_block(0, C, L, BLOCK_C, BLOCK_L)
    columns = tl.arange(0, BLOCK_L)
    query_pointers = queries + n * query_stride + token_offsets
    dt_pointers = token_gradients + n * L * C + token_offsets
    q = tl.load(query_pointers, mask=token_mask, other=0.0)
    dt = tl.load(dt_pointers, mask=token_mask, other=0.0)
    t = tl.load(tokens + n * L * C + token_offsets, mask=token_mask, other=0.0)
    t_dt = tl.sum(t.to(tl.float32) * dt.to(tl.float32), 0)  # L
    logs = tl.load(log_sums + n * L + columns, mask=columns < L, other=float('inf'))
    dq = tl.zeros([BLOCK_C, BLOCK_L], tl.float32)
    for block in range(s, tl.cdiv(P, BLOCK_P), S):
        offsets, mask = map_block(block, 0, P, C, BLOCK_P, BLOCK_C, PIXEL_MAJOR, ALIGNMENT)
        x = tl.load(pixels + n * P * C + offsets, mask=mask, other=0.0)
        if RELOAD:
            q = tl.load(query_pointers, mask=token_mask, other=0.0)
            dt = tl.load(dt_pointers, mask=token_mask, other=0.0)
        logits = tl.dot(x, q, input_precision='ieee') * (scale * LOG2_E)  # P, L
        a = tl.exp2(logits - logs[None, :])
        a = tl.where((block * BLOCK_P + tl.arange(0, BLOCK_P))[:, None] < P, a, 0.0)
        da = tl.dot(x, dt, input_precision='ieee')  # P, L
        ds = (scale * a * (da - t_dt[None, :])).to(x.dtype)
        dx = tl.dot(a.to(x.dtype), tl.trans(dt), input_precision='ieee')
        dx = tl.dot(ds, tl.trans(q), dx, input_precision='ieee')
        tl.store(pixel_gradients + n * P * C + offsets, dx, mask=mask)
        dq = tl.dot(tl.trans(x), ds, dq, input_precision='ieee')
    tl.store(query_gradients + (n * S + s) * L * C + token_offsets, dq, mask=token_mask)


@triton.jit(do_not_specialize=UNSPECIALIZED)
def project_backward_kernel(
    pixels,  # N, P, C
    keys,  # N, L, C
    values,  # N, L, C
    read_gradients,  # N, P, C
    pixel_gradients,  # N, P, C
    key_gradients,  # N, S, L, C
    value_gradients,  # N, S, L, C
    P,
    size_class,
    scale,
    C: tl.constexpr,
    L: tl.constexpr,
    RESIDUAL: tl.constexpr,
    PIXEL_MAJOR: tl.constexpr,
    ALIGNMENT: tl.constexpr,
    RELOAD: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_L: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    """With dY the gradient of Y = A V: dX = dS K, dK = dS^T X and dV = A^T dY, where dA = dY V^T and
    dS = scale * A (dA - sum over L of A dA); with RESIDUAL dX has dY added.
    """
    n, s, S = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    token_offsets, token_mask = token_block(0, C, L, BLOCK_C, BLOCK_L)
    key_pointers, value_pointers = keys + n * L * C + token_offsets, values + n * L * C + token_offsets
    k = tl.load(key_pointers, mask=token_mask, other=0.0)
    v = tl.load(value_pointers, mask=token_mask, other=0.0)
    dk = tl.zeros([BLOCK_C, BLOCK_L], tl.float32)
    dv = tl.zeros([BLOCK_C, BLOCK_L], tl.float32)
    for block in range(s, tl.cdiv(P, BLOCK_P), S):
        offsets, mask = map_block(block, 0, P, C, BLOCK_P, BLOCK_C, PIXEL_MAJOR, ALIGNMENT)
        x = tl.load(pixels + n * P * C + offsets, mask=mask, other=0.0)
        dy = tl.load(read_gradients + n * P * C + offsets, mask=mask, other=0.0)
        if RELOAD:
            k = tl.load(key_pointers, mask=token_mask, other=0.0)
            v = tl.load(value_pointers, mask=token_mask, other=0.0)
        logits = tl.dot(x, k, input_precision='ieee') * (scale * LOG2_E)  # P, L
        a = softmax_over_tokens(logits, L, BLOCK_L)
        da = tl.dot(dy, v, input_precision='ieee')  # P, L
        ds = (scale * a * (da - tl.sum(a * da, 1)[:, None])).to(x.dtype)
        dx = tl.dot(ds, tl.trans(k), input_precision='ieee')
        if RESIDUAL:
            dx += dy.to(tl.float32)
        tl.store(pixel_gradients + n * P * C + offsets, dx, mask=mask)
        dk = tl.dot(tl.trans(x), ds, dk, input_precision='ieee')
        dv = tl.dot(tl.trans(dy), a.to(x.dtype), dv, input_precision='ieee')
    split = (n * S + s) * L * C
    tl.store(key_gradients + split + token_offsets, dk, mask=token_mask)
    tl.store(value_gradients + split + token_offsets, dv, mask=token_mask)
