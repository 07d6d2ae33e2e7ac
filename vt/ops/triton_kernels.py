"""Tokenize and project as Triton kernels: each reads the map once.

Program ``(n, s)`` takes every S-th block of the pixels of sample n, starting at block s, and gathers in registers, in
fp32. The splits' results are put together afterwards in a fixed order: there is no atomic sum, so runs repeat exactly.

Exponentials are powers of two: the kernels multiply logits by ``scale * log2(e)``, and the logarithms of the sums of
exponentials are to the base two.

Letters: N samples, P pixels, C channels, L tokens, S splits. Blocks: BLOCK_P pixels at a time; BLOCK_C and BLOCK_L are
C and L rounded up to powers of two, the rest masked. Maps are dense, ``(N, P, C)`` in memory if PIXEL_MAJOR, else
``(N, C, P)``; whatever belongs to tokens is contiguous, and read as ``(C, L)``, since a matrix product wants the few
tokens as its columns. ALIGNMENT divides P. ``query_stride`` is L x C, or 0 where all samples share their queries.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
UNSPECIALIZED = ('P', 'size_class')  # one machine code for maps of any size; what divides P is in ALIGNMENT


@triton.jit
def map_block(
    block,
    channel,
    P,
    C: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_C: tl.constexpr,
    PIXEL_MAJOR: tl.constexpr,
    ALIGNMENT: tl.constexpr,
):
    """Offsets and mask, both ``(BLOCK_P, BLOCK_C)``, of a block of a sample's pixels, from a channel on."""
    P = P // ALIGNMENT * ALIGNMENT  # the same number, but now the compiler knows how wide it may read
    pixels = (block * BLOCK_P + tl.arange(0, BLOCK_P))[:, None]
    channels = channel + tl.arange(0, BLOCK_C)[None, :]
    offsets = pixels * C + channels if PIXEL_MAJOR else channels * P + pixels
    return offsets, (pixels < P) & (channels < C)


@triton.jit
def token_block(channel, C: tl.constexpr, L: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_L: tl.constexpr):
    """Offsets and mask, both ``(BLOCK_C, BLOCK_L)``, of one sample's tokens, from a channel on."""
    channels, tokens = channel + tl.arange(0, BLOCK_C)[:, None], tl.arange(0, BLOCK_L)[None, :]
    return tokens * C + channels, (tokens < L) & (channels < C)


@triton.jit
def softmax_over_tokens(logits, L: tl.constexpr, BLOCK_L: tl.constexpr):
    """Softmax of ``(BLOCK_P, BLOCK_L)`` over its L real columns; the logits are to the base two."""
    logits = tl.where(tl.arange(0, BLOCK_L)[None, :] < L, logits, float('-inf'))
    exponentials = tl.exp2(logits - tl.max(logits, 1)[:, None])
    return exponentials / tl.sum(exponentials, 1)[:, None]


@triton.jit(do_not_specialize=UNSPECIALIZED)
def tokenize_kernel(
    pixels,  # N, P, C
    queries,  # N, L, C or L, C
    tokens,  # N, S, L, C
    log_sums,  # N, S, L
    P,
    size_class,  # only the autotuner looks at it
    scale,
    query_stride,
    C: tl.constexpr,
    L: tl.constexpr,
    PIXEL_MAJOR: tl.constexpr,
    ALIGNMENT: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_L: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    """The tokens of each split's pixels, by online softmax, and the logarithm of its sum of exponentials.

    With one split these are the tokens.
    """
    n, s, S = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    token_offsets, token_mask = token_block(0, C, L, BLOCK_C, BLOCK_L)
    q = tl.load(queries + n * query_stride + token_offsets, mask=token_mask, other=0.0)
    maxima = tl.full([BLOCK_L], float('-inf'), tl.float32)
    sums = tl.zeros([BLOCK_L], tl.float32)
    gathered = tl.zeros([BLOCK_C, BLOCK_L], tl.float32)
    for block in range(s, tl.cdiv(P, BLOCK_P), S):
        offsets, mask = map_block(block, 0, P, C, BLOCK_P, BLOCK_C, PIXEL_MAJOR, ALIGNMENT)
        x = tl.load(pixels + n * P * C + offsets, mask=mask, other=0.0)
        logits = tl.dot(x, q, input_precision='ieee') * (scale * LOG2_E)  # P, L
        logits = tl.where((block * BLOCK_P + tl.arange(0, BLOCK_P))[:, None] < P, logits, float('-inf'))
        new_maxima = tl.maximum(maxima, tl.max(logits, 0))
        shrink = tl.exp2(maxima - new_maxima)
        a = tl.exp2(logits - new_maxima[None, :])  # P, L
        sums = sums * shrink + tl.sum(a, 0)
        gathered = gathered * shrink[None, :] + tl.dot(tl.trans(x), a.to(x.dtype), input_precision='ieee')
        maxima = new_maxima
    split = n * S + s
    columns = tl.arange(0, BLOCK_L)
    sums_or_one = tl.where(sums > 0, sums, 1.0)  # a split may be without pixels: its tokens are 0, its weight 2^-inf
    tl.store(log_sums + split * L + columns, maxima + tl.log2(sums_or_one), mask=columns < L)
    tl.store(tokens + split * L * C + token_offsets, gathered / sums_or_one[None, :], mask=token_mask)


@triton.jit
def combine_kernel(
    split_tokens,  # N, S, L, C
    split_log_sums,  # N, S, L
    tokens,  # N, L, C
    log_sums,  # N, L
    S,
    C: tl.constexpr,
    L: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """The tokens of all pixels from those of the splits, each weighted by its share of the sum of exponentials."""
    n, token = tl.program_id(0).to(tl.int64), tl.program_id(1)
    splits, channels = tl.arange(0, BLOCK_S), tl.program_id(2) * BLOCK_C + tl.arange(0, BLOCK_C)
    rows = (n * S + splits) * L + token  # S
    logs = tl.load(split_log_sums + rows, mask=splits < S, other=float('-inf'))
    largest = tl.max(logs, 0)
    weights = tl.exp2(logs - largest)
    total = tl.sum(weights, 0)
    mask = (splits[:, None] < S) & (channels[None, :] < C)
    parts = tl.load(split_tokens + rows[:, None] * C + channels[None, :], mask=mask, other=0.0)
    row = n * L + token
    tl.store(tokens + row * C + channels, tl.sum(parts * weights[:, None], 0) / total, mask=channels < C)
    tl.store(log_sums + row, largest + tl.log2(total), mask=tl.program_id(2) == 0)


@triton.jit(do_not_specialize=UNSPECIALIZED)
def project_kernel(
    pixels,  # N, P, C
    keys,  # N, L, C
    values,  # N, L, C
    read,  # N, P, C
    P,
    size_class,
    scale,
    C: tl.constexpr,
    L: tl.constexpr,
    RESIDUAL: tl.constexpr,
    PIXEL_MAJOR: tl.constexpr,
    ALIGNMENT: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_L: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    """What each pixel reads from the tokens, A V, and with RESIDUAL the pixel itself added."""
    n, s, S = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    token_offsets, token_mask = token_block(0, C, L, BLOCK_C, BLOCK_L)
    k = tl.load(keys + n * L * C + token_offsets, mask=token_mask, other=0.0)
    v = tl.load(values + n * L * C + token_offsets, mask=token_mask, other=0.0)
    for block in range(s, tl.cdiv(P, BLOCK_P), S):
        offsets, mask = map_block(block, 0, P, C, BLOCK_P, BLOCK_C, PIXEL_MAJOR, ALIGNMENT)
        x = tl.load(pixels + n * P * C + offsets, mask=mask, other=0.0)
        logits = tl.dot(x, k, input_precision='ieee') * (scale * LOG2_E)  # P, L
        a = softmax_over_tokens(logits, L, BLOCK_L).to(x.dtype)
        y = tl.dot(a, tl.trans(v), input_precision='ieee')
        if RESIDUAL:
            y += x.to(tl.float32)
        tl.store(read + n * P * C + offsets, y, mask=mask)
