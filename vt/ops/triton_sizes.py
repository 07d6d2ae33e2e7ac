"""Sizes of the Triton kernels' blocks, and which sizes they can take. Plain arithmetic: Triton need not be there.

Letters as in ``triton_kernels.py``.
"""

import os
from functools import cache
from importlib.util import find_spec

import torch

MAX_CHANNELS = 1024
MAX_GATHERED = 1024 * 32  # L x C in fp32 is what a program gathers: 64 registers a thread of 16 warps
MAX_TOKENS = {2: 128, 4: 32}  # by the numbers' size in bytes; products of fp32 need more registers
MAX_NARROW_BYTES = 16 * 1024  # of L x C, up to where a program can hold the sums and matrices of the gradients
WIDE_BLOCK_C = 64  # channels at a time where the sums don't fit into registers
MIN_CAPABILITY = (8, 0)


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not below ``n``."""
    return 1 << (n - 1).bit_length()


def block_c(num_channels: int) -> int:
    """C as a power of two; a matrix product wants 16 channels."""
    return max(16, next_power_of_2(num_channels))


def block_l(num_tokens: int, itemsize: int) -> int:
    """L as a power of two; a matrix product wants 16 tokens, or 8 in fp32."""
    return max(8 if itemsize == 4 else 16, next_power_of_2(num_tokens))


def is_wide(num_channels: int, num_tokens: int, itemsize: int) -> bool:
    """Whether the gradients' sums over the pixels are too large for one program's registers."""
    return block_c(num_channels) * block_l(num_tokens, itemsize) * itemsize > MAX_NARROW_BYTES


def needed_shared_memory(num_channels: int, num_tokens: int, itemsize: int) -> int:
    """Bytes of shared memory that suffice for every kernel with 16 pixels at a time, as seen in compiled kernels.

    Forward: a block of pixels, half of it again on its way to other threads, and two matrices of the tokens. Backward,
    where it is one kernel: blocks of two maps, and two matrices of the tokens in two layouts each.
    """
    pixels, tokens = 16, block_l(num_tokens, itemsize)
    rows = 3 * pixels // 2 + 2 * tokens
    if not is_wide(num_channels, num_tokens, itemsize):
        rows = max(rows, 2 * pixels + 4 * tokens)
    return rows * block_c(num_channels) * itemsize + 2048


def fits(num_channels: int, num_tokens: int, itemsize: int, available: int) -> bool:
    """Whether the kernels can take these sizes, on a device with so many bytes of shared memory for a program."""
    if num_channels > MAX_CHANNELS or num_tokens > MAX_TOKENS[itemsize]:
        return False
    gathered = block_c(num_channels) * block_l(num_tokens, itemsize)
    return gathered <= MAX_GATHERED and needed_shared_memory(num_channels, num_tokens, itemsize) <= available


def is_interpreted() -> bool:
    """Whether Triton runs its kernels in Python, on any device: ``TRITON_INTERPRET=1``, set before it is imported."""
    return os.environ.get('TRITON_INTERPRET') == '1'


@torch.compiler.assume_constant_result
def available_shared_memory(device: str, index: int | None) -> int:
    """Bytes of shared memory that a program may take on a device; 0 where Triton can't run there."""
    return _available_shared_memory(device, index)


@cache
def _available_shared_memory(device: str, index: int | None) -> int:
    if find_spec('triton') is None:
        return 0
    if is_interpreted():
        return 1 << 30
    if device != 'cuda' or torch.version.cuda is None or torch.cuda.get_device_capability(index) < MIN_CAPABILITY:
        return 0
    return torch.cuda.get_device_properties(index).shared_memory_per_block_optin
