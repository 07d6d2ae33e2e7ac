"""Measure several models in one process and print the results."""

import gc
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import groupby
from multiprocessing import get_context
from typing import Any

import torch
from torch import nn

from vt.analysis.speed import time_interleaved
from vt.analysis.tables import print_table
from vt.engine.reporting import in_one_line
from vt.errors import UserError

from .settings import Measurement, Setting, describe_size
from .subject import Subject
from .timing import STATUS, give_back_freed_memory, peak_memory, resident_memory, time_token_side
from .workload import Workload, has_part


@dataclass
class Comparison:
    """Measure models in one or several settings.

    In every round each model takes a step, so that all are measured under the same conditions.

    Attributes:
        subjects: the models; the first is the reference.
        kinds: ``'inference'``, ``'training'`` or both.
        rounds: number of steps of each model.
        seconds: approximate time limit per part of the models, for inference and for training.
        memory: measure peak memory.
        meter: what else is measured in every round, of a device and a dtype: the machine's ceilings.
        measurements: results so far.
        ceilings: ceilings of each part, kind and setting so far.
        left_out: models that were not measured in a setting, with the reason.

    Raises:
        UserError: two models have the same name.
    """

    subjects: Sequence[Subject]
    kinds: Sequence[str]
    rounds: int
    seconds: float
    memory: bool = True
    meter: Callable[[torch.device, torch.dtype], Any] | None = None
    measurements: list[Measurement] = field(default_factory=list)
    ceilings: list[dict] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len({(subject.name, subject.tokens) for subject in self.subjects}) < len(self.subjects):
            raise UserError('two of the models have the same name; give each once, or copy a config to another name')

    def measure(self, setting: Setting, parts: Sequence[str] | None = None) -> None:
        """Measure parts of all models in a setting; by default the whole model, and the neck if every model has one.

        Models that do not support the image size are left out, except the first, whose error is raised.
        """
        setting.choose_products()
        models = {subject: subject.build(setting) for subject in self.subjects}
        for subject in self.subjects[1:]:
            if reason := _refusal(subject, models[subject], setting):
                del models[subject]
                self.left_out.append(f'{subject.name} is left out at {describe_size(setting.size)}: {reason}')
        every = models.values()
        for part in parts or [part for part in ('whole', 'neck') if all(has_part(model, part) for model in every)]:
            workloads = {subject: Workload(model, part, setting) for subject, model in models.items()}
            peaks: list[dict[str, int]] = [{} for _ in models]
            if self.memory:
                peaks = [peak_memories(subject, part, setting, tuple(self.kinds)) for subject in models]
            for kind in self.kinds:
                self._measure_kind(workloads, kind, [peak.get(kind) for peak in peaks])

    def _measure_kind(self, workloads: dict[Subject, Workload], kind: str, peaks: list[int | None]) -> None:
        first = workloads[self.subjects[0]]
        setting, part = first.setting, first.part
        device = torch.device(setting.device)
        meter = None if self.meter is None else self.meter(device, setting.tensor_dtype)
        steps = {subject: workload.step(kind) for subject, workload in workloads.items()}
        title = f'{kind.capitalize()}, {part}, {setting.describe()}'
        warmup = 5 if device.type == 'cuda' else 2  # the first steps on a GPU select kernels and record graphs
        more = {} if meter is None else meter.steps
        times = time_interleaved(steps | more, device, title, self.rounds, warmup, self.seconds)
        ceilings = None if meter is None else meter.ceilings(times)
        if ceilings is not None:
            self.ceilings.append(dict(part=part, kind=kind, **asdict(setting), **asdict(ceilings)))
        sees_modules = kind == 'inference' and setting.compile == 'off' and not setting.fuse_conv_bn
        self.measurements += [
            Measurement(
                **asdict(setting),
                model=subject.name,
                part=part,
                kind=kind,
                tokens=subject.tokens,
                seconds=times[subject].tolist(),
                **asdict(workload.count()),
                peak_memory=peak,
                bound_seconds=None if meter is None else meter.bound_seconds(workload, kind, ceilings),
                token_side_seconds=time_token_side(workload.module, step, device) if sees_modules else None,
            )
            for (subject, step), workload, peak in zip(steps.items(), workloads.values(), peaks)
        ]

    def print_tables(self) -> None:
        """Print a table per part, kind and setting."""
        runs = groupby(self.measurements, lambda result: (result.part, result.kind, result.setting))
        for (part, kind, setting), measurements in runs:
            print_table(tabulate(list(measurements)), title=f'{part}, {kind}: {setting.describe()}')


def _refusal(subject: Subject, model: nn.Module, setting: Setting) -> str | None:
    """Return why a model does not support an image size; None if it does."""
    try:
        with torch.inference_mode(), setting.autocast():
            model.eval()(setting.random(1, 3, *setting.size), mode='tensor')
    except Exception as error:
        if not (subject.is_peer or isinstance(error, UserError)):
            raise
        return in_one_line(error)
    return None


def tabulate(measurements: Sequence[Measurement]) -> list[dict[str, str]]:
    """Return a row per model of one interleaved run, compared with the first model."""
    first, rows = measurements[0], []
    for m in measurements:
        row = {
            'model': m.model if m.tokens is None else f'{m.model}, {m.tokens} tokens',
            'FLOPs (G)': f'{m.flops / 1e9:.3f}',
            'fewer': f'{first.flops / m.flops:.3f}x',
            'parameters (M)': f'{m.parameters / 1e6:.2f}',
            'median (ms)': f'{1e3 * m.median:.4g}',
            'spread (%)': f'{100 * m.spread:.1f}',
            'faster': f'{first.median / m.median:.3f}x',
            f'{"images" if len(m.size) == 2 else "clips"}/s': f'{m.batch_size / m.median:.4g}',
        }
        rows.append(row if m.peak_memory is None else row | {'peak memory (MB)': f'{m.peak_memory / 1e6:.0f}'})
    return rows


def peak_memories(subject: Subject, part: str, setting: Setting, kinds: tuple[str, ...]) -> dict[str, int]:
    """Measure the peak memory of a step of each kind, in bytes: weights, inputs, activations, gradients, optimizer.

    On a GPU it is the memory that PyTorch allocates. On a CPU it is the resident memory of a separate process after a
    warm-up, less that without the model; the allocator of the process returns freed memory at once.

    Raises:
        UserError: the device is a CPU and the system is not Linux.
    """
    if torch.device(setting.device).type == 'cuda':
        return _measure(subject, part, setting, kinds)
    if not STATUS.exists():
        raise UserError('peak memory of a CPU can only be measured on Linux: add --no-memory')
    with ProcessPoolExecutor(1, mp_context=get_context('spawn')) as pool:
        return pool.submit(_measure_on_cpu, subject, part, setting, kinds, torch.get_num_threads()).result()


def _measure_on_cpu(subject: Subject, part: str, setting: Setting, kinds: tuple[str, ...], threads: int) -> dict:
    torch.set_num_threads(threads)
    give_back_freed_memory()
    setting.choose_products()
    _measure(subject, part, setting, kinds)  # allocates what is loaded or created once
    return _measure(subject, part, setting, kinds)


def _measure(subject: Subject, part: str, setting: Setting, kinds: tuple[str, ...]) -> dict[str, int]:
    device = torch.device(setting.device)
    gc.collect()
    before = torch.cuda.memory_allocated(device) if device.type == 'cuda' else resident_memory('VmRSS')
    workload = Workload(subject.build(setting), part, setting)  # keeps only the part of the model
    peaks = {}
    for kind in kinds:
        step = workload.step(kind)
        step()  # the first step creates the optimizer's state
        peaks[kind] = peak_memory(step, device) - before
    return peaks
