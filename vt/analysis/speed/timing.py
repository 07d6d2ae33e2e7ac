"""Measure the time of steps.

Steps that are compared run in turn in one process, A B C A B C ..., so that drifts in the speed of the machine affect
all of them; medians and ratios are reported.
"""

import math
import time
from collections.abc import Callable, Hashable

import numpy as np
import torch
from rich.progress import track

Step = Callable[[], object]
SHORTEST_RUN = 0.01  # seconds on a GPU


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
    times = [
        [run_seconds(step, repeats[name], device) for name, step in steps.items()] for _ in track(range(rounds), title)
    ]
    return dict(zip(steps, np.array(times).T))


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
