"""Time and memory of steps, measured so that a comparison holds, and of the token side inside a step.

Steps that are compared run in turn inside one process, A B C A B C ..., so that a machine whose speed drifts is unfair
to none; medians and ratios are reported.
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
    """Time steps in turn: seconds of each one's rounds, ``(rounds,)``, by name.

    A GPU is synchronised around each run. There a run repeats a short step until it takes about ten milliseconds, so
    that a step is launched while the one before still computes.

    Args:
        steps: what to time, by name.
        device: where they run.
        title: stands before the progress line.
        rounds: how often each runs after the warm-up.
        warmup: runs of each before the clock counts.
        seconds: about how long all may take; rounds are cut to fit, to 3 at the least.
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
    """Call steps in turn, A B C A B C ...; of what each returns the median, and all in their order."""
    runs = [{name: step() for name, step in steps.items()} for _ in track(range(rounds), title)]
    by_step = {name: [run[name] for run in runs] for name in steps}
    return {name: (statistics.median(values), values) for name, values in by_step.items()}


def run_seconds(step: Step, repeats: int, device: torch.device) -> float:
    """Seconds of each of ``repeats`` runs in a row; a GPU is synchronised around them."""
    synchronize(device)
    start = time.perf_counter()
    for _ in range(repeats):
        step()
    synchronize(device)
    return (time.perf_counter() - start) / repeats


def synchronize(device: torch.device) -> None:
    """Wait for a GPU; a CPU has done what it was told."""
    if device.type == 'cuda':
        torch.cuda.synchronize(device)


def peak_memory(step: Step, device: torch.device) -> int:
    """Bytes in use at the peak of ``step``, the model's included.

    On a GPU what PyTorch has allocated. On a CPU the resident memory of the process, where Linux lets the high-water
    mark be reset; elsewhere the mark since the process began.
    """
    gc.collect()
    if device.type == 'cuda':
        torch.cuda.reset_peak_memory_stats(device)
        step()
        return torch.cuda.max_memory_allocated(device)
    resets = STATUS.exists() and MARKS.exists()
    if resets:
        MARKS.write_text('5')  # resets the high-water mark
    step()
    return resident_memory('VmHWM') if resets else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def resident_memory(field: str) -> int:
    """Bytes of this process as Linux counts them: ``'VmRSS'`` now, ``'VmHWM'`` at the peak."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def time_token_side(module: nn.Module, step: Step, device: torch.device, rounds: int = 20) -> list[float] | None:
    """Seconds that a step of inference of a module, not compiled, spends in its token side; None without one.

    What that is: :func:`vt.models.token_side.token_side`. One number a run, after two that don't count. Only calls of
    modules are seen: products that a module makes of another one's weights are not. On a GPU its own clock counts.
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
