"""Models side by side: what is measured of them in one run, and how it is told."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

import torch

from vt.analysis.tables import print_table
from vt.errors import UserError

from .ceilings import TITLES, CeilingMeter
from .measurement import Measurement, Setting, describe_size
from .model_memory import peak_memories
from .roofline import bound_seconds
from .subject import Subject
from .timing import time_interleaved, time_token_side
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
    machine. What was measured so far is in ``measurements`` and, of each part, kind and setting, in ``ceilings``.

    Args:
        subjects: the models, the first as the reference.
        kinds: ``'inference'``, ``'training'`` or both.
        rounds: steps of each.
        seconds: about how long one part of the models may take, in inference and in training each.
        memory: measure peak memory.

    Raises:
        UserError: two models have one name.
    """

    def __init__(
        self,
        subjects: Sequence[Subject],
        kinds: Sequence[str],
        rounds: int,
        seconds: float,
        memory: bool = True,
    ) -> None:
        names = [(subject.name, subject.tokens) for subject in subjects]
        if len(set(names)) < len(names):
            raise UserError('two of the models have one name; give each once, or copy a config to another name')
        self.subjects, self.kinds = list(subjects), list(kinds)
        self.rounds, self.seconds = rounds, seconds
        self.memory = memory
        self.measurements: list[Measurement] = []
        self.ceilings: list[dict] = []

    def measure(self, setting: Setting, parts: Sequence[str] | None = None) -> None:
        """Time parts of all models in turn, then what else is known of each.

        Args:
            setting: how they run.
            parts: by default the whole, and the neck where every model has one.
        """
        setting.choose_products()
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
        meter = CeilingMeter(device, setting.tensor_dtype)
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
            found.append(measurement)
        self.measurements += found
        return found

    def print_tables(self) -> None:
        """A table for each part and kind in each setting, then the ceilings."""
        runs = groupby(self.measurements, lambda result: (result.part, result.kind, result.setting))
        for (part, kind, setting), measurements in runs:
            print_table(tabulate(list(measurements)), title=f'{part}, {kind}: {setting.describe()}')
        ceilings = [_describe_ceilings(**ceiling) for ceiling in self.ceilings]
        print_table(ceilings, title="the machine's ceilings", notes=NOTES)


def tabulate(measurements: Sequence[Measurement]) -> list[dict[str, str]]:
    """Rows of one interleaved run, one a model, each against the first."""
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
            'of the roofline (%)': f'{100 * m.share:.0f}',
        }
        rows.append(row if m.peak_memory is None else row | {'peak memory (MB)': f'{m.peak_memory / 1e6:.0f}'})
    return rows


def _describe_ceilings(part: str, kind: str, size: tuple[int, ...], **ceiling: Any) -> dict[str, str]:
    """One of :attr:`Comparison.ceilings` as a row."""
    return {
        'while': f'{part}, {kind}, batch {ceiling["batch_size"]}, {describe_size(size)}',
        'device': ceiling['device'],
        'precision': ceiling['dtype'],
    } | {title: f'{ceiling[name] / 1e9:.1f}' for name, title in TITLES.items()}
