"""Time and memory of steps, measured so that a comparison holds.

Steps that are compared run in turn inside one process, A B C A B C ..., so that a machine whose speed drifts is unfair
to none; medians and ratios are reported.
"""

import gc
import math
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from torch.profiler import ProfilerActivity, profile

Step = Callable[[], object]
SHORTEST_RUN = 0.01  # seconds on a GPU


def describe_device(device: torch.device) -> str:
    """The device's name: a GPU's, or the processor's with the number of threads in use."""
    if device.type == 'cuda':
        return torch.cuda.get_device_name(device)
    lines = Path('/proc/cpuinfo').read_text().splitlines() if Path('/proc/cpuinfo').exists() else []
    names = [line.split(':', 1)[1].strip() for line in lines if line.startswith('model name')]
    return f'{names[0] if names else platform.processor() or "CPU"}, {torch.get_num_threads()} threads'


def time_interleaved(
    steps: dict[str, Step],
    device: torch.device,
    title: str,
    rounds: int = 20,
    warmup: int = 3,
    seconds: float = 60.0,
) -> dict[str, np.ndarray]:
    """Time steps in turn.

    A GPU is synchronised around each run, and a run repeats a short step until it takes ten milliseconds or so: what
    is measured is a step in a row of them, launched while the one before still computes, where there is time for it.

    Args:
        steps: what to time, by name.
        device: where they run.
        title: stands before the progress line.
        rounds: how often each runs after the warm-up.
        warmup: runs of each before the clock counts.
        seconds: about how long all may take; rounds are cut to fit, to 3 at the least.

    Returns:
        Seconds of a step, of each round, ``(rounds,)``, by name.
    """
    repeats = dict.fromkeys(steps, 1)
    for _ in range(warmup - 1):
        _time_round(steps, repeats, device)
    once = _time_round(steps, repeats, device)
    if device.type == 'cuda':
        repeats = {name: max(1, math.ceil(SHORTEST_RUN / value)) for name, value in once.items()}
    a_round = sum(value * repeats[name] for name, value in once.items())
    rounds = max(3, min(rounds, int(seconds / a_round)))
    times = [_time_round(steps, repeats, device) for _ in track(range(rounds), title)]
    return {name: np.array([run[name] for run in times]) for name in steps}


def time_alone(step: Step, device: torch.device, title: str, rounds: int = 20, seconds: float = 20.0) -> np.ndarray:
    """Seconds of each run of one step, ``(rounds,)``; see :func:`time_interleaved`."""
    return time_interleaved({title: step}, device, title, rounds, seconds=seconds)[title]


def _time_round(steps: dict[str, Step], repeats: dict[str, int], device: torch.device) -> dict[str, float]:
    return {name: _time(step, repeats[name], device) for name, step in steps.items()}


def _time(step: Step, repeats: int, device: torch.device) -> float:
    _synchronize(device)
    start = time.perf_counter()
    for _ in range(repeats):
        step()
    _synchronize(device)
    return (time.perf_counter() - start) / repeats


def _synchronize(device: torch.device) -> None:
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
    status, marks = Path('/proc/self/status'), Path('/proc/self/clear_refs')
    if status.exists() and marks.exists():
        marks.write_text('5')  # resets the high-water mark
        step()
        line = next(line for line in status.read_text().splitlines() if line.startswith('VmHWM'))
        return int(line.split()[1]) * 1024
    step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def time_by_operator(step: Step, device: torch.device, most: int = 8) -> dict[str, float]:
    """Where a step's time goes: seconds in each operator itself, of one run, the largest first and the rest summed."""
    step()
    activities = [ProfilerActivity.CUDA if device.type == 'cuda' else ProfilerActivity.CPU]
    with profile(activities=activities) as profiler:
        step()
    name = 'self_device_time_total' if device.type == 'cuda' else 'self_cpu_time_total'
    seconds = {event.key: getattr(event, name) / 1e6 for event in profiler.key_averages()}
    ordered = sorted(seconds.items(), key=lambda item: -item[1])
    return dict(ordered[:most]) | {'others': sum(value for _, value in ordered[most:])}
