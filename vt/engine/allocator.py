"""What glibc's allocator does with memory that a step has freed."""

import ctypes
import os
import platform

# Parameters of glibc's mallopt, from malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4
SMALL = 2**16  # bytes
OTHER_ALLOCATORS = ('jemalloc', 'tcmalloc', 'mimalloc')


def keep_freed_memory() -> bool:
    """Let glibc keep freed memory for the next step.

    By default it gives large blocks back to the system as soon as they are freed. A step then asks for the same memory
    again, and the system fills every page of it with zeros: up to half of the time of a step on a CPU.

    Returns:
        Whether it is so now. False without glibc, and where the user's environment chose an allocator or its settings,
        which stand: ``GLIBC_TUNABLES``, ``MALLOC_*``, or another allocator in ``LD_PRELOAD``.
    """
    chosen = any(name == 'GLIBC_TUNABLES' or name.startswith('MALLOC_') for name in os.environ)
    replaced = any(name in os.environ.get('LD_PRELOAD', '') for name in OTHER_ALLOCATORS)
    if chosen or replaced or platform.libc_ver()[0] != 'glibc':
        return False
    libc = ctypes.CDLL(None)
    # Large blocks on the heap as all others, and the heap never shrinks.
    return bool(libc.mallopt(M_MMAP_MAX, 0) and libc.mallopt(M_TRIM_THRESHOLD, -1))


def give_back_freed_memory() -> None:
    """Let glibc give freed memory back to the system at once, so that a process's memory is what it uses."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, 'mallopt'):
        libc.mallopt(M_MMAP_THRESHOLD, SMALL)
        libc.mallopt(M_TRIM_THRESHOLD, SMALL)
