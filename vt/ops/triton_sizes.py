"""Which maps the Triton kernels take, and how they are launched. Plain arithmetic: Triton need not be there.

Letters as in ``triton_kernels.py``.
"""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

from .maps import is_channel_major

MAX_TOKENS = {2: 32, 4: 8}  # by the numbers' size in bytes; exact products of fp32 take more registers
MAX_TOKEN_BYTES = 8 * 1024  # of L x C: the gradients' sums and matrices stay in a program's registers
COPIED_BYTES = 4  # that memory holds in order at least: the narrowest asynchronous copy, and less takes a register each
FORWARD, BACKWARD = 32 * 1024, 16 * 1024  # bytes of the largest block of pixels
BLOCKS = (64, 32, 16)  # pixels; a matrix product wants 16
PROGRAMS_PER_PROCESSOR = 2
INTERPRETED_PROCESSORS = 3  # where there is no device to ask
MIN_CAPABILITY = (8, 0)
_only: int | None = None


class Choice(NamedTuple):
    """Pixels in a block, warps of a program and stages of its pipeline, by the names that a launch has for them."""

    BLOCK_P: int
    num_warps: int
    num_stages: int


class Plan(NamedTuple):
    """How a kernel is launched: the choices that are worth a measurement, the likeliest first, and S."""

    choices: tuple[Choice, ...]
    splits: int


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not below ``n``."""
    return 1 << (n - 1).bit_length()


def block_c(num_channels: int) -> int:
    """C as a power of two; a matrix product wants 16 channels."""
    return max(16, next_power_of_2(num_channels))


def block_l(num_tokens: int, itemsize: int) -> int:
    """L as a power of two; a matrix product wants 16 tokens, or 8 in fp32."""
    return max(8 if itemsize == 4 else 16, next_power_of_2(num_tokens))


def alignment(pixels: Tensor) -> int:
    """How many numbers of a channel-major map can be read at once: a power of two that divides P, up to 16 bytes."""
    steps = (8, 4, 2, 1) if is_channel_major(pixels) else (1,)
    return next(step for step in steps if step * pixels.itemsize <= 16 and pixels.shape[1] % step == 0)


def fits(pixels: Tensor, num_tokens: int) -> bool:
    """Whether the kernels gain anything on pixels ``(N, P, C)``: sums in registers, memory read in wide pieces.

    Where the sums are larger, as with the 1,024 channels of ResNet-50, the gradients would take as many passes over
    the map as by matrix products, or more.
    """
    _, num_pixels, c = pixels.shape
    itemsize, in_order = pixels.itemsize, num_pixels if is_channel_major(pixels) else c
    small = block_c(c) * block_l(num_tokens, itemsize) * itemsize <= MAX_TOKEN_BYTES
    return small and num_tokens <= MAX_TOKENS[itemsize] and in_order * itemsize % COPIED_BYTES == 0


def choices(num_channels: int, itemsize: int, most_bytes: int) -> list[Choice]:
    """All ways to launch a kernel on maps of so many channels, larger blocks first.

    A thread holds at most 64 numbers of a block of pixels. The largest blocks are fetched one ahead, others two.

    Args:
        num_channels: C.
        itemsize: bytes of a number.
        most_bytes: of a block, ``FORWARD`` or ``BACKWARD``.
    """
    found = []
    for pixels in BLOCKS:
        numbers = pixels * block_c(num_channels)
        if numbers * itemsize <= most_bytes or pixels == BLOCKS[-1]:
            stages = 3 if 2 * numbers * itemsize <= most_bytes else 2
            found.append(Choice(pixels, 8 if numbers >= 8192 else 4, stages))
    return found


def plan(pixels: Tensor, most_bytes: int) -> Plan:
    """How to launch a kernel on pixels ``(N, P, C)``; ``most_bytes`` as in :func:`choices`.

    Of the blocks that are small enough to give every processor one, the two largest are worth a measurement; a map that
    is too small even so is cut as finely as it can be. Each program gets at least one block, and there are no more
    programs than run at once. Where PyTorch is to be deterministic, nothing is left to measure.
    """
    (n, num_pixels, c), processors = pixels.shape, num_processors(pixels.device.type, pixels.device.index)
    every = choices(c, pixels.itemsize, most_bytes)
    if _only:
        return Plan((next(choice for choice in every if choice.BLOCK_P <= _only),), splits=2)  # noqa: SIM300
    filling = [choice for choice in every if n * math.ceil(num_pixels / choice.BLOCK_P) >= processors]
    worth_it = tuple(filling[:2]) or (every[-1],)
    splits = min(PROGRAMS_PER_PROCESSOR * processors // n, math.ceil(num_pixels / worth_it[0].BLOCK_P))
    measured = not (is_interpreted() or torch.are_deterministic_algorithms_enabled())
    return Plan(worth_it if measured else worth_it[:1], max(1, splits))


@contextmanager
def only(block_p: int) -> Iterator[None]:
    """Launch every kernel with blocks of so many pixels, or the largest that it has below, and with two splits.

    So that each choice can be tried on a small map, with several blocks for each program.
    """
    global _only
    _only = block_p
    try:
        yield
    finally:
        _only = None


def is_interpreted() -> bool:
    """Whether Triton runs its kernels in Python, on any device: ``TRITON_INTERPRET=1``, set before it is imported."""
    return os.environ.get('TRITON_INTERPRET') == '1'


@cache
def num_processors(device: str, index: int | None) -> int:
    """How many of a device's processors there are to fill."""
    return torch.cuda.get_device_properties(index).multi_processor_count if device == 'cuda' else INTERPRETED_PROCESSORS


@torch.compiler.assume_constant_result
def can_run(device: str, index: int | None) -> bool:
    """Whether Triton can run on a device."""
    return _can_run(device, index)


@cache
def _can_run(device: str, index: int | None) -> bool:
    if find_spec('triton') is None:
        return False
    if is_interpreted():
        return True
    return (
        device == 'cuda'
        and torch.version.cuda is not None
        and torch.cuda.get_device_capability(index) >= MIN_CAPABILITY
    )
