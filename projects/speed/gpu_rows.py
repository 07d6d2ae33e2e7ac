"""Rows of a GPU's report, and the time of a step. Times are microseconds.

On a CPU, in a dry run, a launch is the step itself, its operators stand for kernels, and there is no CUDA graph.
"""

import cProfile
import gc
import pstats
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.profiler import DeviceType, ProfilerActivity, profile

from vt.analysis.speed import Step, run_seconds, synchronize
from vt.engine.reporting import in_one_line
from vt.engine.run.cuda_graphs import capture

from .gpu_report import Row, add_line
from .settings import Setting

TOP = 10  # kernels or functions that are listed
OURS = ('tokenize_kernel', 'project_kernel')


@dataclass(frozen=True)
class Rows:
    """The rows of a part, which are written to a folder one by one; none begins after ``until``."""

    part: str
    until: float  # of time.monotonic
    device: torch.device
    dry: bool  # measures in the smallest sizes
    folder: Path

    def add(self, measure: Callable[[Row], object], **row: Any) -> None:
        """Let ``measure`` add to a row; an exception is the row's error, and its traceback goes to the log."""
        row = dict(part=self.part) | row
        begin = time.monotonic()
        print(*row.values(), flush=True)
        if begin > self.until:
            add_line(self.folder, row | dict(skipped='no time was left'))
            return
        try:
            measure(row)
        except Exception as error:
            row['error'] = in_one_line(error)[:300]
            self.log(f'{row}\n{traceback.format_exc()}')
        add_line(self.folder, row | dict(row_seconds=round(time.monotonic() - begin, 2)))
        gc.collect()
        synchronize(self.device)  # raises if this process can no longer use the GPU
        torch.cuda.empty_cache()

    def log(self, text: str) -> None:
        """Add a text to the log."""
        with (self.folder / 'log.txt').open('a') as file:
            file.write(text + '\n')

    def setting(self, **values: Any) -> Setting:
        """Return how models run, by default under autocast in bfloat16."""
        return Setting(**dict(device=self.device.type, dtype='bfloat16') | values)

    def time(self, step: Step) -> dict[str, float]:
        """Time a step in a row of steps, launched as fast as Python can: three to seven times of many steps."""
        seconds = 0.02 if self.dry else 0.4
        once = min(run_seconds(step, 1, self.device) for _ in range(2))
        rounds = int(np.clip(seconds / once, 3, 7))
        repeats = max(1, int(seconds / rounds / once))
        return describe([run_seconds(step, repeats, self.device) for _ in range(rounds)])


def describe(seconds: Sequence[float]) -> dict[str, float]:
    """Return median, interquartile range and minimum."""
    low, median, high = np.percentile(seconds, (25, 50, 75)) * 1e6
    return dict(us=float(median), iqr_us=float(high - low), least_us=1e6 * min(seconds))


def time_launch(step: Step, device: torch.device, rounds: int = 5) -> dict[str, float]:
    """Time how long Python takes to launch a step into an empty queue, without waiting for the GPU."""
    runs = []
    for _ in range(rounds):
        synchronize(device)
        start = time.perf_counter()
        step()
        runs.append(time.perf_counter() - start)
    return describe(runs)


def time_cold(step: Step) -> dict[str, float]:
    """Time the GPU alone: a CUDA graph of a step, whose operands are not in the L2 cache."""
    from triton.testing import do_bench  # which empties that cache before each run

    replay, _ = capture(step)
    return describe([1e-3 * run for run in do_bench(replay, warmup=10, rep=100, return_mode='all')])


def list_kernels(step: Step, device: torch.device) -> dict[str, Any]:
    """List a step's kernels on a GPU, or operators on a CPU: number, total time, VT's kernels, and the slowest."""
    on_gpu = device.type == 'cuda'
    with profile(activities=[ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * on_gpu]) as seen:
        step()
        synchronize(device)
    kind = DeviceType.CUDA if on_gpu else DeviceType.CPU
    times = 'self_device_time_total' if on_gpu else 'self_cpu_time_total'
    found = [event for event in seen.key_averages() if event.device_type == kind and not event.is_user_annotation]
    rows = [dict(name=event.key[:90], n=event.count, us=getattr(event, times)) for event in found]
    rows.sort(key=lambda row: -row['us'])
    ours = ', '.join(name for name in OURS if any(row['name'].startswith(name) for row in rows))
    return dict(
        launches=sum(row['n'] for row in rows), busy_us=sum(row['us'] for row in rows), ours=ours, top=rows[:TOP]
    )


def profile_python(step: Step, device: torch.device, repeats: int = 5) -> list[Row]:
    """List the functions in which Python spends most of its time, per step, in the backward pass, too."""
    profiler = cProfile.Profile()
    synchronize(device)
    with torch.autograd.set_multithreading_enabled(False):  # the profiler sees only this thread
        profiler.enable()
        for _ in range(repeats):
            step()
        profiler.disable()
    rows = [
        dict(name=f'{Path(file).name}:{line} {name}'[:90], n=calls / repeats, us=1e6 * own / repeats)
        for (file, line, name), (_, calls, own, *_) in pstats.Stats(profiler).stats.items()
    ]
    return sorted(rows, key=lambda row: -row['us'])[:TOP]
