"""The page on performance: its tables, figures and the numbers in its text, all from measurements.

``tools/benchmark/performance.sh`` measures them, and ``tools/gpu_report.py`` those of a GPU.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, StrictUndefined
from matplotlib.figure import Figure

from vt.analysis.speed.ceilings import TITLES
from vt.analysis.speed.measurement import KINDS, PIXELS, BenchmarkRecord, Measurement, read_record
from vt.analysis.speed.scaling import Line, draw_lines, exponent, scaling_lines
from vt.checkpoints.files import read_json
from vt.errors import MissingFileError

from . import gpu_tables
from .markdown import BENCHMARKS, ROOT, Rows, insert, milliseconds, short_name, table

SCRIPT = 'bash tools/benchmark/performance.sh'
TEMPLATE = ROOT / 'docs/performance.template.md'
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
OTHER_TABLES = ('data_loading', 'startup')  # of other tools; the page has a table of each that is there
# Columns of what tools/benchmark/products.py measured.
PRODUCTS = dict(blas='BLAS (GFLOP/s)', onednn='oneDNN where it pays (GFLOP/s)')
PIXEL_PRODUCTS = dict(
    logits='logits, BLAS (ms)',
    convolution='logits, a 1x1 convolution (ms)',
    sums='sums over pixels (ms)',
    onto='added to the map (ms)',
    read='reading the map (ms)',
)
FORMATS = dict(
    times=lambda value: f'{value:.2f}x',
    percent=lambda value: f'{100 * value:.0f} %',
    power=lambda value: f'{value:.2f}',
    mb=lambda value: f'{value / 1e6:,.0f} MB',
    table=table,
)


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


def render(folder: Path) -> str:
    """The page's text: its template with the numbers of a folder of measurements.

    Raises:
        MissingFileError: a measurement that the page needs is not there.
    """
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= FORMATS
    cpu = read_records(folder)
    folders = machines(folder)
    return environment.from_string(TEMPLATE.read_text()).render(
        cpu=describe_device(cpu),
        gpus=[gpu_tables.read(path) for path in sorted(folder.glob('*/measured.json'))],
        gpu_script=gpu_tables.SCRIPT,
        script=SCRIPT,
        machines=machine_rows(folders),
        products=_products(folders),
        systems=_tables(folders, SYSTEMS),
        small=_tables(folders, SMALL),
        others={name: read_rows(folder / f'{name}_{CPU}.json') for name in OTHER_TABLES},
    )


def render_readme(readme: str) -> str:
    """The README with its table: each model on the CPU against what it replaces."""
    return insert(readme, 'performance', table(summary_rows(read_records(BENCHMARKS))))


def _products(folders: list[Path]) -> list[dict[str, Any]]:
    """What ``tools/benchmark/products.py`` found on each machine."""
    found = [_read(folder / f'products_{CPU}.json') for folder in folders]
    return [
        each['trial']
        | dict(
            device=each['device'],
            rows=[
                {'rows x in x out': 'x'.join(map(str, row['size'])), 'kind': row['kind']}
                | {title: f'{row[name]:.0f}' for name, title in PRODUCTS.items()}
                for row in each['products']
            ],
            pixels=[
                {'pixels': '{}x{}'.format(*row['size'])}
                | {title: milliseconds(row[name]) for name, title in PIXEL_PRODUCTS.items()}
                for row in each['pixels']
            ],
        )
        for each in found
        if each
    ]


def _tables(folders: list[Path], name: str) -> list[dict[str, Any]]:
    """A comparison of models on each machine that measured it."""
    paths = [folder / f'{name}_{CPU}.json' for folder in folders]
    records = [read_record(path) for path in paths if path.is_file()]
    return [dict(device=record.device, rows=compare_rows(record.results)) for record in records]


def describe_device(records: dict[str, BenchmarkRecord]) -> dict[str, Any]:
    """What the template says of a CPU."""
    some, whole = records[NECKS], records[SEGMENTORS]
    return dict(
        device=some.device,
        versions=some.versions,
        commands={name: record.command for name, record in records.items()},
        ceilings=ceiling_rows(records.values()),
        necks=_pairs(some) | dict(rows=compare_rows(some.results)),
        segmentors=_pairs(whole) | dict(rows=compare_rows(whole.results)),
        resnets={name: _pairs(records[name]) for name in RESNETS},
        resnet_rows=[row for name in RESNETS for row in compare_rows(records[name].results)],
        scaling=_scaling(records, SCALING, 'pixels'),
        tokens=_scaling(records, TOKENS, 'tokens'),
        settings=setting_rows(records),
        half=compare_rows(records[HALF].results),
        folded_rows=[row for name in FOLDED for row in compare_rows(records[name].results)],
    )


def _read(path: Path) -> Any:
    return read_json(path, f'measure it again: {SCRIPT}', (dict, list)) if path.is_file() else None


def _pairs(record: BenchmarkRecord) -> dict[str, Pair]:
    kinds = dict.fromkeys(m.kind for m in record.results)
    return {kind: pair(record, kind) for kind in kinds}


def _scaling(records: dict[str, BenchmarkRecord], names: dict[str, str], x: str) -> dict[str, dict]:
    return {
        what: dict(
            rows=scaling_rows(records[name], x),
            exponents={label: exponent(*line) for label, line in named_lines(records[name], x).items()},
        )
        for name, what in names.items()
    }


def read_rows(path: Path) -> Rows | None:
    """A JSON list of flat dictionaries as rows of a table, units as they are; None where the file isn't there."""
    content = _read(path)
    if content is None:
        return None
    frame = pd.DataFrame(content['results'] if isinstance(content, dict) else content)
    flat = frame.loc[:, ~frame.map(lambda cell: isinstance(cell, (list, dict))).any()]
    text = flat.map(lambda cell: f'{cell:.4g}' if isinstance(cell, float) else str(cell)).where(flat.notna(), '')
    return text.rename(columns=lambda name: name.replace('_', ' ')).to_dict('records')


def draw(folder: Path) -> dict[str, Figure]:
    """The page's figures, by their paths."""
    return {'docs/performance/scaling.png': draw_scaling(folder), 'docs/performance/memory.png': draw_memory(folder)}


def draw_scaling(folder: Path) -> Figure:
    """Time against pixels, of necks and classifiers, and against tokens, on the CPU."""
    records = read_records(folder)
    panels = [(x, names, name) for names, x in ((SCALING, 'pixels'), (TOKENS, 'tokens')) for name in names]
    figure = Figure(figsize=(13, 13), layout='constrained')
    axes = figure.subplots(2, 2)
    for panel, (x, names, name) in zip(axes.flat, panels):
        draw_lines(panel, x, named_lines(records[name], x))
        panel.set_title(names[name])
    return figure


def draw_memory(folder: Path) -> Figure:
    """Peak memory of a training step, VT beside what it replaces, on the CPU."""
    records = read_records(folder)
    pairs = [pair(records[name], 'training') for name in (NECKS, SEGMENTORS, *RESNETS)]
    figure = Figure(figsize=(9, 4.5), layout='constrained')
    axes = figure.subplots()
    places = np.arange(len(pairs))
    for offset, (label, side) in zip((-0.2, 0.2), (('replaced', 'theirs'), ('VT', 'ours'))):
        heights = [getattr(pair, side).peak_memory / 1e6 for pair in pairs]
        axes.bar_label(axes.bar(places + offset, heights, 0.4, label=label), fmt='%.0f', fontsize='small')
    names = [f'{short_name(pair.theirs.model)}\n({pair.theirs.part})' for pair in pairs]
    axes.set_xticks(places, names)
    axes.set_ylabel('peak memory of a training step, MB')
    axes.legend()
    return figure
