"""Measure time and memory of steps, and the time of the token side within a step.

Steps that are compared run in turn in one process, A B C A B C ..., so that drifts in the speed of the machine affect
all of them; medians and ratios are reported.
"""

import gc
import math
import resource
import statistics
import time
from collections.abc import Callable, Hashable
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from torch import nn

from vt.models.token_side import token_side

Step = Callable[[], object]
SHORTEST_RUN = 0.01  # seconds on a GPU
STATUS, MARKS = Path('/proc/self/status'), Path('/proc/self/clear_refs')


def time_interleaved(
    steps: dict[Hashable, Step], device: torch.device, title: str, rounds: int, warmup: int = 3, seconds: float = 60.0
) -> dict[Hashable, np.ndarray]:
    """Time steps in turn.

    A GPU is synchronised around each run. There, a run repeats a short step until it takes about ten milliseconds, so
    that a step is launched while the previous one is still computed.

    Args:
        steps: steps to time, by name.
        device: their device.
        title: title of the progress bar.
        rounds: number of runs of each step after the warm-up.
        warmup: number of runs of each step before timing.
        seconds: approximate time limit; it reduces the number of rounds, to 3 at least.

    Returns:
        Seconds of each round, ``(rounds,)``, by name.
    """
    repeats = dict.fromkeys(steps, 1)
    for _ in range(warmup):
        once = {name: run_seconds(step, 1, device) for name, step in steps.items()}
    if device.type == 'cuda':
        repeats = {name: max(1, math.ceil(SHORTEST_RUN / value)) for name, value in once.items()}
    a_round = sum(value * repeats[name] for name, value in once.items())
    rounds = max(3, min(rounds, int(seconds / a_round)))
    timed = {name: lambda name=name: run_seconds(steps[name], repeats[name], device) for name in steps}
    return {name: np.array(runs) for name, (_, runs) in median_of_rounds(timed, rounds, title).items()}


def median_of_rounds(
    steps: dict[Hashable, Callable[[], float]], rounds: int, title: str
) -> dict[Hashable, tuple[float, list[float]]]:
    """Call steps in turn, A B C A B C ...; return the median and the list of each step's results."""
    runs = [{name: step() for name, step in steps.items()} for _ in track(range(rounds), title)]
    by_step = {name: [run[name] for run in runs] for name in steps}
    return {name: (statistics.median(values), values) for name, values in by_step.items()}


def run_seconds(step: Step, repeats: int, device: torch.device) -> float:
    """Return the mean seconds of ``repeats`` consecutive runs; a GPU is synchronised before and after."""
    synchronize(device)
    start = time.perf_counter()
    for _ in range(repeats):
        step()
    synchronize(device)
    return (time.perf_counter() - start) / repeats


def synchronize(device: torch.device) -> None:
    """Wait for a GPU; do nothing on a CPU."""
    if device.type == 'cuda':
        torch.cuda.synchronize(device)


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


def time_token_side(module: nn.Module, step: Step, device: torch.device, rounds: int = 20) -> list[float] | None:
    """Measure the seconds that a step of inference spends in :func:`vt.models.token_side.token_side` of a module.

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
