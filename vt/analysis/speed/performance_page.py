"""The page on performance: its tables, figures and the numbers in its text, all from measurements."""

from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from matplotlib.figure import Figure

from vt.analysis.tables import to_markdown
from vt.checkpoints.files import read_json

from . import gpu_tables, product_times
from . import performance as data
from .measurement import BenchmarkRecord, read_record
from .scaling import draw_lines, exponent

# Kept beside the measurements by other tools; the page has a table of each that is there.
OTHER_TABLES = ('data_loading', 'startup')
FORMATS = dict(
    times=lambda value: f'{value:.2f}x',
    percent=lambda value: f'{100 * value:.0f} %',
    power=lambda value: f'{value:.2f}',
    mb=lambda value: f'{value / 1e6:,.0f} MB',
    table=lambda rows: to_markdown(fill(rows)),
)


def render(template: str, folder: Path) -> str:
    """The page's text: Jinja's template with the numbers of a folder of measurements.

    Raises:
        MissingFileError: a measurement that the page needs is not there.
    """
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= FORMATS
    cpu = data.read_records(folder)
    machines = data.machines(folder)
    return environment.from_string(template).render(
        cpu=describe_device(cpu),
        gpus=[gpu_tables.read(path) for path in sorted(folder.glob('*/measured.json'))],
        gpu_script=gpu_tables.SCRIPT,
        script=data.SCRIPT,
        machines=data.machine_rows(machines),
        products=_products(machines),
        systems=_tables(machines, data.SYSTEMS),
        small=_tables(machines, data.SMALL),
        others={name: read_rows(folder / f'{name}_{data.CPU}.json') for name in OTHER_TABLES},
    )


def summarise(folder: Path) -> str:
    """The table of the README: each model on the CPU against what it replaces."""
    return to_markdown(data.summary_rows(data.read_records(folder)))


def _products(folders: list[Path]) -> list[dict[str, Any]]:
    """What ``tools/benchmark_products.py`` found on each machine."""
    found = [_read(folder / f'products_{data.CPU}.json') for folder in folders]
    return [
        each['trial']
        | dict(
            device=each['device'],
            rows=product_times.table(each),
            pixels=product_times.pixel_table(each['pixels']),
        )
        for each in found
        if each
    ]


def _tables(folders: list[Path], name: str) -> list[dict[str, Any]]:
    """A comparison of models on each machine that measured it."""
    paths = [folder / f'{name}_{data.CPU}.json' for folder in folders]
    records = [read_record(path) for path in paths if path.is_file()]
    return [dict(device=record.device, rows=data.compare_rows(record.results)) for record in records]


def describe_device(records: dict[str, BenchmarkRecord]) -> dict[str, Any]:
    """What the template says of a CPU."""
    some, whole = records[data.NECKS], records[data.SEGMENTORS]
    return dict(
        device=some.device,
        versions=some.versions,
        commands={name: record.command for name, record in records.items()},
        ceilings=data.ceiling_rows(records.values()),
        necks=_pairs(some) | dict(rows=data.compare_rows(some.results)),
        segmentors=_pairs(whole) | dict(rows=data.compare_rows(whole.results)),
        resnets={name: _pairs(records[name]) for name in data.RESNETS},
        resnet_rows=[row for name in data.RESNETS for row in data.compare_rows(records[name].results)],
        scaling=_scaling(records, data.SCALING, 'pixels'),
        tokens=_scaling(records, data.TOKENS, 'tokens'),
        settings=data.setting_rows(records),
        half=data.compare_rows(records[data.HALF].results),
        folded_rows=[row for name in data.FOLDED for row in data.compare_rows(records[name].results)],
    )


def _read(path: Path) -> Any:
    return read_json(path, f'measure it again: {data.SCRIPT}', (dict, list)) if path.is_file() else None


def _pairs(record: BenchmarkRecord) -> dict[str, data.Pair]:
    kinds = dict.fromkeys(m.kind for m in record.results)
    return {kind: data.pair(record, kind) for kind in kinds}


def _scaling(records: dict[str, BenchmarkRecord], names: dict[str, str], x: str) -> dict[str, dict]:
    return {
        what: dict(
            rows=data.scaling_rows(records[name], x),
            exponents={label: exponent(*line) for label, line in data.named_lines(records[name], x).items()},
        )
        for name, what in names.items()
    }


def fill(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Rows with every column of each, empty where a row has nothing there."""
    columns = dict.fromkeys((column for row in rows for column in row), '')
    return [columns | row for row in rows]


def read_rows(path: Path) -> list[dict[str, str]] | None:
    """A JSON list of flat dictionaries as rows of a table, units as they are; None where the file isn't there."""
    content = _read(path)
    if content is None:
        return None
    entries = content['results'] if isinstance(content, dict) else content
    flat = [{key: value for key, value in entry.items() if not isinstance(value, (list, dict))} for entry in entries]
    return fill([{key.replace('_', ' '): _describe(value) for key, value in entry.items()} for entry in flat])


def _describe(value: Any) -> str:
    if value is None:
        return ''
    return f'{value:.4g}' if isinstance(value, float) else str(value)


def draw_page_scaling(folder: Path) -> Figure:
    """Time against pixels, of necks and classifiers, and against tokens, on the CPU."""
    records = data.read_records(folder)
    panels = [(x, names, name) for names, x in ((data.SCALING, 'pixels'), (data.TOKENS, 'tokens')) for name in names]
    figure = Figure(figsize=(13, 13), layout='constrained')
    axes = figure.subplots(2, 2)
    for panel, (x, names, name) in zip(axes.flat, panels):
        draw_lines(panel, x, data.named_lines(records[name], x))
        panel.set_title(names[name])
    return figure


def draw_memory(folder: Path) -> Figure:
    """Peak memory of a training step, VT beside what it replaces, on the CPU."""
    records = data.read_records(folder)
    pairs = [data.pair(records[name], 'training') for name in (data.NECKS, data.SEGMENTORS, *data.RESNETS)]
    figure = Figure(figsize=(9, 4.5), layout='constrained')
    axes = figure.subplots()
    places = np.arange(len(pairs))
    for offset, (label, side) in zip((-0.2, 0.2), (('replaced', 'theirs'), ('VT', 'ours'))):
        heights = [getattr(pair, side).peak_memory / 1e6 for pair in pairs]
        axes.bar_label(axes.bar(places + offset, heights, 0.4, label=label), fmt='%.0f', fontsize='small')
    names = [f'{data.short_name(pair.theirs.model)}\n({pair.theirs.part})' for pair in pairs]
    axes.set_xticks(places, names)
    axes.set_ylabel('peak memory of a training step, MB')
    axes.legend()
    return figure
