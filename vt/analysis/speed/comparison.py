"""Models side by side: what is measured of them in one run, and how it is told."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

import torch

from vt.analysis.tables import print_table
from vt.errors import UserError

from .ceilings import TITLES, CeilingMeter
from .measurement import Measurement, Setting
from .model_memory import peak_memories
from .roofline import bound_seconds
from .subject import Subject
from .timing import time_by_operator, time_interleaved, time_token_side
from .workload import Workload, has_part

# What must be known to read the tables.
NOTES = (
    "FLOPs of models are multiply-adds; in the ceilings' GFLOP/s one of them is two. A copy counts what it reads and "
    'what it writes.',
    'Of the roofline: the time of the matrix operators alone, each at these ceilings, over the measured time.',
)


class Comparison:
    """Measures models in one setting after another.

    In every round all models take a step, and then the machine's ceilings are measured, so that both see the same
    machine.

    Args:
        subjects: the models, the first as the reference.
        kinds: ``'inference'``, ``'training'`` or both.
        rounds: steps of each.
        seconds: about how long one part of the models may take, in inference and in training each.
        memory: measure peak memory.
        profile: measure where a part's time goes, the whole's left out.

    Raises:
        UserError: two models have one name.

    Attributes:
        measurements: what was measured so far.
        ceilings: of each part, kind and setting.
    """

    def __init__(
        self,
        subjects: Sequence[Subject],
        kinds: Sequence[str],
        rounds: int,
        seconds: float,
        memory: bool = True,
        profile: bool = False,
    ) -> None:
        names = [(subject.name, subject.tokens) for subject in subjects]
        if len(set(names)) < len(names):
            raise UserError('two of the models have one name; give each once, or copy a config to another name')
        self.subjects, self.kinds = list(subjects), list(kinds)
        self.rounds, self.seconds = rounds, seconds
        self.memory, self.profile = memory, profile
        self.measurements: list[Measurement] = []
        self.ceilings: list[dict] = []

    def measure(self, setting: Setting, parts: Sequence[str] | None = None) -> None:
        """Time parts of all models in turn, then what else is known of each.

        Args:
            setting: how they run.
            parts: by default the whole, and the neck where every model has one.
        """
        models = [subject.build(setting) for subject in self.subjects]
        parts = parts or [part for part in ('whole', 'neck') if all(has_part(model, part) for model in models)]
        for part in parts:
            workloads = [Workload(model, part, setting) for model in models]
            found = [self._measure_kind(workloads, kind) for kind in self.kinds]
            for subject, of_kinds in zip(self.subjects, zip(*found)) if self.memory else ():
                peaks = peak_memories(subject, part, setting, tuple(self.kinds))
                for measurement in of_kinds:
                    measurement.peak_memory = peaks[measurement.kind]

    def _measure_kind(self, workloads: list[Workload], kind: str) -> list[Measurement]:
        """A measurement a model, kept and returned."""
        setting, part = workloads[0].setting, workloads[0].part
        device = torch.device(setting.device)
        meter = CeilingMeter(device, getattr(torch, setting.dtype))
        steps = {subject: workload.step(kind) for subject, workload in zip(self.subjects, workloads)}
        title = f'{kind.capitalize()}, {part}, {setting.describe()}'
        warmup = 5 if device.type == 'cuda' else 2  # there kernels are chosen and graphs recorded in the first ones
        times = time_interleaved(steps | meter.steps, device, title, self.rounds, warmup, self.seconds)
        ceilings = meter.ceilings(times)
        self.ceilings.append(dict(part=part, kind=kind, **asdict(setting), **asdict(ceilings)))
        found = []
        for (subject, step), workload in zip(steps.items(), workloads):
            measurement = Measurement(
                model=subject.name,
                part=part,
                kind=kind,
                **asdict(setting),
                tokens=subject.tokens,
                seconds=times[subject].tolist(),
                **asdict(workload.count()),
                bound_seconds=bound_seconds(workload.matrix_operators(kind), ceilings),
            )
            if kind == 'inference' and setting.compile == 'off' and not setting.fuse_conv_bn:
                measurement.token_side_seconds = time_token_side(workload.module, step, device)
            if self.profile and part != 'whole':
                measurement.seconds_by_operator = time_by_operator(step, device)
            found.append(measurement)
        self.measurements += found
        return found

    def print_tables(self) -> None:
        """A table for each part and kind in each setting, then the ceilings, then where time goes."""
        runs = groupby(self.measurements, lambda result: (result.part, result.kind, result.setting))
        for (part, kind, setting), measurements in runs:
            print_table(tabulate(list(measurements)), title=f'{part}, {kind}: {setting.describe()}')
        ceilings = [_describe_ceilings(**ceiling) for ceiling in self.ceilings]
        print_table(ceilings, title="the machine's ceilings", notes=NOTES)
        for result in self.measurements:
            if result.seconds_by_operator:
                title = f'{result.model}, {result.part}, {result.kind}: where the time goes'
                print_table(_describe_operators(result.seconds_by_operator), title=title)


def tabulate(measurements: Sequence[Measurement]) -> list[dict[str, str]]:
    """Rows of one interleaved run, one a model, each against the first."""
    return [_tabulate(measurement, measurements[0]) for measurement in measurements]


def _tabulate(measurement: Measurement, first: Measurement) -> dict[str, str]:
    tokens = '' if measurement.tokens is None else f', {measurement.tokens} tokens'
    row = {
        'model': measurement.model + tokens,
        'FLOPs (G)': f'{measurement.flops / 1e9:.3f}',
        'fewer': f'{first.flops / measurement.flops:.3f}x',
        'parameters (M)': f'{measurement.parameters / 1e6:.2f}',
        'median (ms)': f'{1e3 * measurement.median:.4g}',
        'spread (%)': f'{100 * measurement.spread:.1f}',
        'faster': f'{first.median / measurement.median:.3f}x',
        'images/s': f'{measurement.batch_size / measurement.median:.4g}',
        'of the roofline (%)': f'{100 * measurement.share:.0f}',
    }
    if measurement.peak_memory is not None:
        row['peak memory (MB)'] = f'{measurement.peak_memory / 1e6:.0f}'
    return row


def _describe_ceilings(part: str, kind: str, size: tuple[int, int], **ceiling: Any) -> dict[str, str]:
    """One of :attr:`Comparison.ceilings` as a row."""
    height, width = size
    return {
        'while': f'{part}, {kind}, batch {ceiling["batch_size"]}, {height}x{width}',
        'device': ceiling['device'],
        'precision': ceiling['dtype'],
    } | {title: f'{ceiling[name] / 1e9:.1f}' for name, title in TITLES.items()}


def _describe_operators(seconds: dict[str, float]) -> list[dict[str, str]]:
    """A row an operator of a measurement's ``seconds_by_operator``."""
    whole = sum(seconds.values())
    return [
        {'operator': name, 'ms': f'{1e3 * value:.1f}', 'share (%)': f'{100 * value / whole:.0f}'}
        for name, value in seconds.items()
    ]
