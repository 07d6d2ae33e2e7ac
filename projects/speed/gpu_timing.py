"""What one step costs a GPU and the Python that launches it. Times are microseconds.

On a CPU, in a dry run, a launch is the step itself, its operators stand for kernels, and there is no CUDA graph.
"""

import statistics
import time
from typing import Any

import numpy as np
import torch
from torch.profiler import DeviceType, ProfilerActivity, profile

from vt.analysis.speed import Step, run_seconds, synchronize
from vt.engine.cuda_graphs import capture

TOP = 10  # kernels that are listed


def time_row(step: Step, device: torch.device, seconds: float) -> dict[str, float]:
    """Median and interquartile range of a step in a row of steps, launched as fast as Python can.

    Args:
        step: what to time.
        device: where it runs.
        seconds: about how long all rows take; a step that is too long for it runs three times.
    """
    once = min(run_seconds(step, 1, device) for _ in range(2))
    rounds = int(np.clip(seconds / once, 3, 7))
    repeats = max(1, int(seconds / rounds / once))
    runs = [1e6 * run_seconds(step, repeats, device) for _ in range(rounds)]
    low, median, high = np.percentile(runs, (25, 50, 75)).tolist()
    return dict(us=median, iqr_us=high - low)


def time_launch(step: Step, device: torch.device, rounds: int = 5) -> float:
    """Median of what Python takes to launch a step into an empty queue; the GPU's work is not waited for."""
    runs = []
    for _ in range(rounds):
        synchronize(device)
        start = time.perf_counter()
        step()
        runs.append(1e6 * (time.perf_counter() - start))
    return statistics.median(runs)


def time_cold(step: Step) -> dict[str, float]:
    """The GPU's time alone: a CUDA graph of a step, whose operands are not in the L2 cache; as :func:`time_row`."""
    from triton.testing import do_bench  # which empties that cache before each run

    replay, _ = capture(step)
    low, median, high = do_bench(replay, warmup=10, rep=100, quantiles=[0.25, 0.5, 0.75])
    return dict(us=1e3 * median, iqr_us=1e3 * (high - low))


def list_kernels(step: Step, device: torch.device) -> dict[str, Any]:
    """Kernels of a step: how many are launched, how long the GPU is busy, and those that take longest."""
    gpu = device.type == 'cuda'
    with profile(activities=[ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * gpu]) as seen:
        step()
        synchronize(device)
    kind = DeviceType.CUDA if gpu else DeviceType.CPU
    found = [event for event in seen.key_averages() if event.device_type == kind and not event.is_user_annotation]
    rows = [
        dict(name=event.key[:90], n=event.count, us=event.self_device_time_total if gpu else event.self_cpu_time_total)
        for event in found
    ]
    rows.sort(key=lambda row: -row['us'])
    return dict(launches=sum(row['n'] for row in rows), busy_us=sum(row['us'] for row in rows), top=rows[:TOP])
