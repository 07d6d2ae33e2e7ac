"""What ``tools/benchmark_performance.sh`` measured, as pairs and rows of tables."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from vt.errors import MissingFileError

from .ceilings import TITLES
from .measurement import KINDS, PIXELS, BenchmarkRecord, Measurement, read_record
from .scaling import Line, exponent, scaling_lines

SCRIPT = 'bash tools/benchmark_performance.sh'
CPU = 'cpu'
DEPTHS = (18, 34, 50, 101)
# Files of a CPU, docs/benchmarks/<name>_cpu.json, and what each shows.
NECKS, SEGMENTORS = 'necks_800x1216', 'segmentors_800x1216'
RESNETS = tuple(f'resnet{depth}' for depth in DEPTHS)
SCALING = dict(scaling_necks='necks', scaling_resnets='classifiers')
TOKENS = dict(tokens_necks='necks', tokens_resnets='classifiers')
LAYOUT, ALLOCATOR = 'necks-contiguous_800x1216', 'necks-default-allocator_800x1216'
HALF = 'necks-bfloat16_800x1216'
SYSTEMS = 'systems_512x512'  # VT in backbone and neck; not every machine has it
COMPILED = ('necks-pixels_800x1216', 'segmentors-pixels_800x1216')  # thin products compiled; nor these
SMALL = 'small'  # images of the size of the embedded data; nor this
FOLDED = ('segmentors-folded_800x1216', *(f'{name}-folded' for name in RESNETS))
ON_CPU = (NECKS, SEGMENTORS, *RESNETS, *SCALING, *TOKENS, LAYOUT, ALLOCATOR, HALF, *FOLDED)
# What a table has a column for where its measurements differ in it.
VARIED = dict(batch_size='batch', size='size', dtype='precision', compile='compiled', tokens='tokens')
Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Pair:
    """A model that is replaced, and ours in its place, of one interleaved run."""

    theirs: Measurement
    ours: Measurement

    @property
    def faster(self) -> float:
        """Their median time over ours."""
        return self.theirs.median / self.ours.median

    @property
    def fewer(self) -> float:
        """Their FLOPs over ours."""
        return self.theirs.flops / self.ours.flops

    @property
    def delivered(self) -> float:
        """How much of the FLOPs' ratio is seen in time."""
        return self.faster / self.fewer

    @property
    def memory(self) -> float:
        """Our peak memory over theirs."""
        return self.ours.peak_memory / self.theirs.peak_memory


def read_records(folder: Path) -> dict[str, BenchmarkRecord]:
    """All records of a CPU that the page needs, by what they show.

    Raises:
        MissingFileError: one is not there.
    """
    paths = {name: folder / f'{name}_{CPU}.json' for name in ON_CPU}
    if missing := [path for path in paths.values() if not path.is_file()]:
        raise MissingFileError(f'there is no {missing[0]}; measure it: {SCRIPT}')
    return {name: read_record(path) for name, path in sorted(paths.items(), key=lambda item: item[1])}


def short_name(model: str) -> str:
    """A config's name up to its recipe, such as ``vt-fpn_r50``; a peer's whole name."""
    parts = model.split('_')
    recipe = next((index for index, part in enumerate(parts) if part[0].isdigit()), len(parts))
    return '_'.join(parts[:recipe])


def pair(record: BenchmarkRecord, kind: str) -> Pair:
    """The first two models of a record in its first setting."""
    theirs, ours, *_ = (m for m in record.results if m.kind == kind and m.setting == record.results[0].setting)
    return Pair(theirs, ours)


def compare_rows(results: Sequence[Measurement]) -> Rows:
    """A row for each model in each setting, against the first model there; inference first, then training."""
    varied = [name for name in VARIED if len({str(getattr(m, name)) for m in results}) > 1]
    firsts: dict[tuple, Measurement] = {}
    pairs = [Pair(firsts.setdefault((m.setting, m.kind), m), m) for m in results]
    return [_describe_pair(pair, varied) for pair in sorted(pairs, key=lambda pair: KINDS.index(pair.ours.kind))]


def _describe_pair(pair: Pair, varied: Iterable[str]) -> dict[str, str]:
    m = pair.ours
    row = {'model': short_name(m.model), 'kind': m.kind}
    row |= {VARIED[name]: _describe_value(getattr(m, name)) for name in varied}
    row |= {
        'GFLOPs': f'{m.flops / 1e9:.2f}',
        'fewer': f'{pair.fewer:.2f}x',
        'ms': milliseconds(m.median),
        'spread': f'{100 * m.spread:.1f} %',
        'faster': f'{pair.faster:.2f}x',
        "of the FLOPs' ratio": f'{100 * pair.delivered:.0f} %',
        'of the roofline': f'{100 * m.share:.0f} %',
    }
    return row if m.peak_memory is None else row | {'peak memory (MB)': f'{m.peak_memory / 1e6:,.0f}'}


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds of at least three digits."""
    value = 1e3 * seconds
    return f'{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}'


def _describe_value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return 'x'.join(map(str, value))
    return '' if value is None else str(value)


def summary_rows(records: dict[str, BenchmarkRecord]) -> Rows:
    """A row for each pair of models in its first setting: milliseconds of ours, and the ratios."""
    rows = []
    for name in (NECKS, SEGMENTORS, *RESNETS):
        inference, training = (pair(records[name], kind) for kind in KINDS)
        ours = inference.ours
        height, width = ours.size
        part = ' neck' if ours.part == 'neck' else ''
        row = {
            'model, instead of': f'{short_name(ours.model)}{part}, {short_name(inference.theirs.model)}',
            'batch': f'{ours.batch_size} x {height}x{width}',
            'fewer FLOPs': f'{inference.fewer:.2f}x',
            'inference (ms)': milliseconds(ours.median),
            'faster': f'{inference.faster:.2f}x',
            'training step (ms)': milliseconds(training.ours.median),
            'faster in training': f'{training.faster:.2f}x',
        }
        rows.append(row)
    return rows


def machines(folder: Path) -> list[Path]:
    """Folders that hold the necks' measurements on a CPU: the folder itself, then those in it, one a machine."""
    return [each.parent for each in (folder / f'{NECKS}_{CPU}.json', *sorted(folder.glob(f'*/{NECKS}_{CPU}.json')))]


def machine_rows(folders: Iterable[Path]) -> Rows:
    """Processors side by side, a column each: the ceilings, and how much faster each model is than what it replaces."""
    columns = [_describe_machine(folder) for folder in folders]
    what = dict.fromkeys(row for _, rows in columns for row in rows)
    return [{'': row} | {device: rows.get(row, '') for device, rows in columns} for row in what]


def _describe_machine(folder: Path) -> tuple[str, dict[str, str]]:
    """A processor's name, and its column."""
    paths = {name: folder / f'{name}_{CPU}.json' for name in (NECKS, SEGMENTORS, *COMPILED, *RESNETS)}
    records = {name: read_record(path) for name, path in paths.items() if path.is_file()}
    (ceilings,) = ceiling_rows(records.values())
    rows = {title: ceilings[title].split(' ')[0] for title in (TITLES['matmul'], TITLES['convolution3x3'])}
    rows['token products by'] = dict(blas='BLAS', onednn='oneDNN')[records[NECKS].results[0].token_products]
    for record in records.values():
        inference, training = (pair(record, kind) for kind in KINDS)
        part = ' neck' if inference.ours.part == 'neck' else ''
        compiled = ', thin products compiled' if inference.ours.compile == PIXELS else ''
        folded = ', norms folded in inference' if inference.ours.fuse_conv_bn else ''
        name = f'{short_name(inference.ours.model)}{part}{compiled}{folded}: inference, training'
        rows[name] = f'{inference.faster:.2f}x, {training.faster:.2f}x'
    return records[NECKS].device, rows


def setting_rows(records: dict[str, BenchmarkRecord]) -> Rows:
    """The necks under each choice of memory format and allocator: what each choice is worth."""
    rows = []
    for kind, name in product(KINDS, (NECKS, LAYOUT, ALLOCATOR)):
        found = pair(records[name], kind)
        row = {
            'kind': kind,
            'memory format': found.ours.memory_format,
            'allocator': 'keeps freed memory' if records[name].settings['keeps_freed_memory'] else 'default',
            f'{short_name(found.theirs.model)} (ms)': milliseconds(found.theirs.median),
            f'{short_name(found.ours.model)} (ms)': milliseconds(found.ours.median),
            'faster': f'{found.faster:.2f}x',
        }
        rows.append(row)
    return rows


def named_lines(record: BenchmarkRecord, x: str) -> dict[str, Line]:
    """The lines of a record in inference, over pixels or tokens, with short names."""
    return scaling_lines([m for m in record.results if m.kind == 'inference'], x, short_name)


def scaling_rows(record: BenchmarkRecord, x: str) -> Rows:
    """A row a line: milliseconds at each size or number of tokens, and the exponent."""
    columns = {m.pixels: 'x'.join(map(str, m.size)) for m in record.results} if x == 'pixels' else {}
    rows = []
    for label, (xs, ys) in named_lines(record, x).items():
        row = {'ms': label} | {columns.get(place, str(place)): milliseconds(y) for place, y in zip(xs, ys)}
        rows.append(row | {'exponent': f'{exponent(xs, ys):.2f}'})
    return rows


def ceiling_rows(records: Iterable[BenchmarkRecord]) -> Rows:
    """The ceilings of each precision: the median and the range over all runs."""
    by_dtype: dict[str, list[dict]] = {}
    for record in records:
        for ceiling in record.ceilings:
            by_dtype.setdefault(ceiling['dtype'], []).append(ceiling)
    return [
        {'precision': dtype} | {title: _range([c[name] / 1e9 for c in ceilings]) for name, title in TITLES.items()}
        for dtype, ceilings in by_dtype.items()
    ]


def _range(values: list[float]) -> str:
    return f'{np.median(values):.4g} ({min(values):.4g} to {max(values):.4g})'
