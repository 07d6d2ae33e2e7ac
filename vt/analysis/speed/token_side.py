"""Time of the modules that see tokens alone, inside a step."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from vt.models.grouped_linear import GroupedLinear

from .timing import Step


def token_side(module: nn.Module) -> list[nn.Module]:
    """The outermost modules that see tokens and no pixels: relations, and token-side matrices outside of them."""
    found: dict[str, nn.Module] = {}
    for name, part in module.named_modules():
        is_relation = name.split('.')[-1] == 'relation' and any(True for _ in part.parameters())
        inside = any(name.startswith(f'{outer}.') for outer in found)
        if (is_relation or isinstance(part, GroupedLinear)) and not inside:
            found[name] = part
    return list(found.values())


def time_token_side(module: nn.Module, step: Step, device: torch.device, rounds: int = 20) -> list[float] | None:
    """Seconds that a step spends in :func:`token_side`, of each of some runs; None where there is nothing such.

    Only calls of modules are seen: products that a module makes of another one's weights are not.

    Args:
        module: what ``step`` runs, not compiled.
        step: a step of inference.
        device: where it runs; on a GPU its own clock counts.
        rounds: number of runs, after two that don't count.
    """
    parts = token_side(module)
    if not parts:
        return None
    clock = _gpu_clock if device.type == 'cuda' else _cpu_clock
    with _watch(parts, clock) as marks:
        runs = []
        for _ in range(rounds + 2):
            marks.clear()
            step()
            if device.type == 'cuda':
                torch.cuda.synchronize(device)
            runs.append(sum(_seconds(start, end) for start, end in zip(marks[::2], marks[1::2])))
    return runs[2:]


@contextmanager
def _watch(parts: list[nn.Module], clock: Callable[[], object]) -> Iterator[list]:
    """Mark the time before and after every call of the modules."""
    marks: list = []
    hooks = [part.register_forward_pre_hook(lambda *_: marks.append(clock())) for part in parts]
    hooks += [part.register_forward_hook(lambda *_: marks.append(clock())) for part in parts]
    try:
        yield marks
    finally:
        for hook in hooks:
            hook.remove()


def _cpu_clock() -> float:
    return time.perf_counter()


def _gpu_clock() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _seconds(start: object, end: object) -> float:
    return end - start if isinstance(start, float) else start.elapsed_time(end) / 1e3
