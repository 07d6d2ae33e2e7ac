"""Steps in turn, the time of the token side within a step, and the memory of a process."""

import ctypes
import gc
import resource
import statistics
import time
from collections.abc import Callable, Hashable
from pathlib import Path

import torch
from rich.progress import track
from torch import nn

from vt.analysis.speed import Step, synchronize
from vt.models.visual_transformers.grouped_linear import GroupedLinear

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # parameters of glibc's mallopt, from malloc.h
SMALL = 2**16  # bytes
STATUS, MARKS = Path('/proc/self/status'), Path('/proc/self/clear_refs')


def median_of_rounds(
    steps: dict[Hashable, Callable[[], float]], rounds: int, title: str
) -> dict[Hashable, tuple[float, list[float]]]:
    """Call steps in turn, A B C A B C ...; return the median and the list of each step's results."""
    runs = [{name: step() for name, step in steps.items()} for _ in track(range(rounds), title)]
    by_step = {name: [run[name] for run in runs] for name in steps}
    return {name: (statistics.median(values), values) for name, values in by_step.items()}


def token_side(model: nn.Module) -> list[nn.Module]:
    """Return the outermost modules that process only tokens: relations, and token-side matrices outside of them."""
    found: dict[str, nn.Module] = {}
    for name, part in model.named_modules():
        is_relation = name.split('.')[-1] == 'relation' and any(True for _ in part.parameters())
        inside = any(name.startswith(f'{outer}.') for outer in found)
        if (is_relation or isinstance(part, GroupedLinear)) and not inside:
            found[name] = part
    return list(found.values())


def time_token_side(module: nn.Module, step: Step, device: torch.device, rounds: int = 20) -> list[float] | None:
    """Measure the seconds that a step of inference spends in the token side of a module.

    Only calls of modules are measured, with events on a GPU; the module must not be compiled.

    Returns:
        Seconds of each run after two warm-up runs; None if the module has no token side.
    """
    parts, marks, runs = token_side(module), [], []

    def mark(*_: object) -> None:
        if device.type == 'cuda':
            marks.append(torch.cuda.Event(enable_timing=True))
            marks[-1].record()
        else:
            marks.append(time.perf_counter())

    hooks = [
        hook for part in parts for hook in (part.register_forward_pre_hook(mark), part.register_forward_hook(mark))
    ]
    try:
        for _ in range(rounds + 2 if parts else 0):
            marks.clear()
            step()
            synchronize(device)
            pairs = zip(marks[::2], marks[1::2])
            gpu = device.type == 'cuda'
            runs.append(sum(start.elapsed_time(end) / 1e3 if gpu else end - start for start, end in pairs))
    finally:
        for hook in hooks:
            hook.remove()
    return runs[2:] or None


def give_back_freed_memory() -> None:
    """Make glibc return freed memory to the system at once, so that the size of a process is what it uses."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, 'mallopt'):
        libc.mallopt(M_MMAP_THRESHOLD, SMALL)
        libc.mallopt(M_TRIM_THRESHOLD, SMALL)


def peak_memory(step: Step, device: torch.device) -> int:
    """Return the peak memory during ``step`` in bytes, including that of the model.

    On a GPU it is the memory that PyTorch allocates; on a CPU the peak resident memory of the process, since the start
    of the step if Linux allows resetting it, otherwise since the start of the process.
    """
    gc.collect()
    if device.type == 'cuda':
        torch.cuda.reset_peak_memory_stats(device)
        step()
        return torch.cuda.max_memory_allocated(device)
    resets = STATUS.exists() and MARKS.exists()
    if resets:
        MARKS.write_text('5')  # resets the peak
    step()
    return resident_memory('VmHWM') if resets else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def resident_memory(field: str) -> int:
    """Return the resident memory of this process on Linux in bytes: ``'VmRSS'`` now, ``'VmHWM'`` at the peak."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024
