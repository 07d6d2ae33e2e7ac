"""The page on performance: its tables, figures and the numbers in its text, all from measurements.

``projects/speed/performance.sh`` measures them, and ``projects/speed/gpu_report.py`` those of a GPU.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from docs.reports.markdown import Rows, cells, fill, milliseconds, short_name
from docs.reports.metafiles import read_models
from vt.errors import MissingFileError
from vt.files import read_json

from . import gpu_report, gpu_tables
from .scaling import Line, draw_lines, exponent, scaling_lines
from .speeds import by_kind, read_pairs, read_speeds

# Columns of the table of ceilings.
TITLES = dict(
    matmul='matrix product (GFLOP/s)',
    convolution1x1='1x1 convolution (GFLOP/s)',
    convolution3x3='3x3 convolution (GFLOP/s)',
    copy='copy (GB/s)',
)
SCRIPT = 'bash projects/speed/performance.sh'
AGAIN = f'measure it again: {SCRIPT}'
FOLDER = Path(__file__).parent
MEASURED, TEMPLATE = FOLDER / 'measured', FOLDER / 'performance.template.md'
# Files of a CPU, measured/<name>_cpu.json, and what each shows.
NECKS, SEGMENTORS = 'necks_800x1216', 'segmentors_800x1216'
RESNETS = ('resnet18', 'resnet34', 'resnet50', 'resnet101')
MODELS = (NECKS, SEGMENTORS, *RESNETS)
SCALING = dict(scaling_necks='necks', scaling_resnets='classifiers')
TOKENS = dict(tokens_necks='necks', tokens_resnets='classifiers')
SETTINGS = (NECKS, 'necks-contiguous_800x1216', 'necks-default-allocator_800x1216')
HALF = 'necks-bfloat16_800x1216'
FOLDED = ('segmentors-folded_800x1216', *(f'{name}-folded' for name in RESNETS))
NEEDED = {*MODELS, *SCALING, *TOKENS, *SETTINGS, HALF, *FOLDED}
# Not every machine has these: VT in backbone and neck, images of the embedded data's size.
SYSTEMS, SMALL = 'systems_512x512', 'small'
OTHER_TABLES = ('startup', 'loading_steps')  # of other tools; the page has a table of each that is there
INFERENCE, INFERENCE_PARTS = 'inference_cpu.json', 'inference_parts_cpu.json'
UTILISATION = 0.3  # of a GPU's measured rate of matrix products, by models whose training was not measured on it

# What a table has a column for where a file's measurements differ in it.
VARIED = ['batch_size', 'size', 'dtype', 'compile', 'tokens']
SUMMARY = {
    'model, instead of': '{inference[name]}, {inference[first_short]}',
    'batch': '{inference[batch_size]} x {inference[size]}',
    'fewer FLOPs': '{inference[fewer]:.2f}x',
    'inference (ms)': '{inference[median]:ms}',
    'faster': '{inference[faster]:.2f}x',
    'training step (ms)': '{training[median]:ms}',
    'faster in training': '{training[faster]:.2f}x',
}


def read_all(folder: Path) -> pd.DataFrame:
    """All measurements of a CPU that the page needs.

    Raises:
        MissingFileError: one is not there.
    """
    paths = sorted(folder / f'{name}_cpu.json' for name in NEEDED)
    if missing := [path for path in paths if not path.is_file()]:
        raise MissingFileError(f'there is no {missing[0]}; measure it: {SCRIPT}')
    return read_speeds(paths)


def select(speeds: pd.DataFrame, *names: str) -> pd.DataFrame:
    """The measurements of some files, in their order, inference before training."""
    return pd.concat([speeds[speeds['file'] == name].sort_values('kind', kind='stable') for name in names])


def compare(speeds: pd.DataFrame, *names: str) -> pd.DataFrame:
    """The same for a table, without what is the same in all of a file."""
    found = select(speeds, *names)
    same = found.groupby('path')[VARIED].nunique(dropna=False).max() == 1
    return found.drop(columns=same[same].index)


def summarize(speeds: pd.DataFrame) -> Rows:
    """A row for each pair of models in its first setting: milliseconds of ours, and the ratios."""
    return cells(by_kind(read_pairs(select(speeds, *MODELS))), SUMMARY)


def machines(folder: Path) -> list[Path]:
    """Folders that hold the necks' measurements on a CPU: the folder itself, then those in it, one a machine."""
    return [folder, *sorted(path.parent for path in folder.glob(f'*/{NECKS}_cpu.json'))]


def compare_machines(folders: list[Path]) -> pd.DataFrame:
    """Processors side by side, a column each: the ceilings, and how much faster each model is than what it replaces."""
    columns = [_describe_machine(folder) for folder in folders]
    return pd.concat(columns, axis=1).rename_axis('').reset_index()


def _describe_machine(folder: Path) -> pd.Series:
    paths = [folder / f'{name}_cpu.json' for name in (NECKS, SEGMENTORS, *RESNETS)]
    speeds = read_speeds([path for path in paths if path.is_file()])
    (ceilings,) = describe_ceilings(speeds).to_dict('records')
    rows = {title: ceilings[title].split(' ')[0] for title in (TITLES['matmul'], TITLES['convolution3x3'])}
    rows['token products by'] = dict(blas='BLAS', onednn='oneDNN')[speeds['token_products'].iloc[0]]
    for kinds in by_kind(read_pairs(speeds.sort_values('kind', kind='stable'))):
        ours = kinds['inference']
        folded = ', norms folded in inference' if ours['fuse_conv_bn'] else ''
        ratios = ', '.join(f'{kinds[kind]["faster"]:.2f}x' for kind in ('inference', 'training'))
        rows[f'{ours["name"]}{folded}: inference, training'] = ratios
    return pd.Series(rows, name=speeds['record'].iloc[0].device)


def compare_settings(speeds: pd.DataFrame) -> Rows:
    """The necks under each choice of memory format and allocator: what each choice is worth."""
    pairs = read_pairs(select(speeds, *SETTINGS)).sort_values('kind', kind='stable')
    keeps = [record.settings['keeps_freed_memory'] for record in pairs['record']]
    pairs['allocator'] = np.where(keeps, 'keeps freed memory', 'default')
    theirs, ours = pairs[['first_short', 'short']].iloc[0]
    forms = {
        'kind': '{kind}',
        'memory format': '{memory_format}',
        'allocator': '{allocator}',
        f'{theirs} (ms)': '{first_median:ms}',
        f'{ours} (ms)': '{median:ms}',
        'faster': '{faster:.2f}x',
    }
    return cells(pairs, forms)


def scale(speeds: pd.DataFrame, name: str, x: str) -> dict[str, Line]:
    """The lines of a file in inference, over pixels or tokens, with short names."""
    kept = speeds[(speeds['file'] == name) & (speeds['kind'] == 'inference')]
    return scaling_lines([*kept['measurement']], x, short_name)


def describe_scaling(speeds: pd.DataFrame, name: str, x: str) -> Rows:
    """A row a line: milliseconds at each size or number of tokens, and the exponent."""
    sizes = {each.pixels: '{}x{}'.format(*each.size) for each in speeds['measurement']} if x == 'pixels' else {}
    return [
        {'ms': label}
        | {sizes.get(place, str(place)): milliseconds(y) for place, y in zip(xs, ys)}
        | {'exponent': f'{exponent(xs, ys):.2f}'}
        for label, (xs, ys) in scale(speeds, name, x).items()
    ]


def describe_ceilings(speeds: pd.DataFrame) -> pd.DataFrame:
    """The ceilings of each precision: the median and the range over all runs."""
    records = speeds.drop_duplicates('path')['record']
    frame = pd.DataFrame([ceiling for record in records for ceiling in record.ceilings])
    ranges = frame.groupby('dtype', sort=False)[[*TITLES]].agg(
        lambda each: '{:.4g} ({:.4g} to {:.4g})'.format(*(each / 1e9).agg(['median', 'min', 'max']))
    )
    return ranges.rename(columns=TITLES).rename_axis('precision').reset_index()


def render(folder: Path) -> str:
    """The page's text: its template with the numbers of a folder of measurements.

    Raises:
        MissingFileError: a measurement that the page needs is not there.
    """
    speeds, folders = read_all(folder), machines(folder)
    gpus = [gpu_tables.read(path.parent) for path in sorted(folder.glob(f'*/{gpu_report.FILE}'))]
    kinds = {rows['inference']['file']: rows for rows in by_kind(read_pairs(select(speeds, *MODELS)))}
    records = speeds.drop_duplicates('path').set_index('file')['record']
    return fill(
        TEMPLATE,
        cpu=records[NECKS],
        n=kinds[NECKS],
        s=kinds[SEGMENTORS],
        r18=kinds[RESNETS[0]],
        exponents={label: exponent(*line) for label, line in scale(speeds, 'scaling_necks', 'pixels').items()},
        commands={name: record.command for name, record in records.items()},
        ceilings=describe_ceilings(speeds),
        necks=compare(speeds, NECKS),
        segmentors=compare(speeds, SEGMENTORS),
        resnets=compare(speeds, *RESNETS),
        half=compare(speeds, HALF),
        folded=compare(speeds, *FOLDED),
        settings=compare_settings(speeds),
        scaling={what: describe_scaling(speeds, name, 'pixels') for name, what in SCALING.items()},
        tokens={what: describe_scaling(speeds, name, 'tokens') for name, what in TOKENS.items()},
        gpus=gpus,
        loading=read_loading(folder / 'data_loading_cpu.json', gpus),
        clips=read_loading(folder / 'clip_loading_cpu.json', gpus),
        utilisation=UTILISATION,
        gpu_script=gpu_tables.SCRIPT,
        script=SCRIPT,
        machines=compare_machines(folders),
        products=[read_json(each, AGAIN) for path in folders if (each := path / 'products_cpu.json').is_file()],
        systems=_tables(folders, SYSTEMS),
        small=_tables(folders, SMALL),
        others={name: read_rows(folder / f'{name}_cpu.json') for name in OTHER_TABLES},
        inference=(folder / INFERENCE).is_file()
        and dict(
            device=read_json(folder / INFERENCE, AGAIN)['device'],
            **{part: read_rows(folder / INFERENCE, part) for part in ('latency', 'throughput')},
        ),
        parts=(folder / INFERENCE_PARTS).is_file()
        and dict(
            device=read_json(folder / INFERENCE_PARTS, AGAIN)['device'],
            rows=read_rows(folder / INFERENCE_PARTS),
        ),
    )


def _tables(folders: list[Path], name: str) -> list[dict[str, Any]]:
    """A comparison of models on each machine that measured it."""
    frames = [read_speeds([path]) for folder in folders if (path := folder / f'{name}_cpu.json').is_file()]
    return [dict(device=frame['record'].iloc[0].device, rows=compare(frame, name)) for frame in frames]


def read_rows(path: Path, part: str = 'results') -> Rows | None:
    """A JSON list of flat dictionaries as rows of a table, units as they are; None where the file isn't there.

    ``part`` is the list's key in a dict.
    """
    if not path.is_file():
        return None
    content = read_json(path, AGAIN)
    frame = pd.DataFrame(content[part] if isinstance(content, dict) else content)
    flat = frame.loc[:, ~frame.map(lambda cell: isinstance(cell, (list, dict))).any()]
    text = flat.map(lambda cell: f'{cell:.4g}' if isinstance(cell, float) else str(cell)).where(flat.notna(), '')
    return text.rename(columns=lambda name: name.replace('_', ' ')).to_dict('records')


def read_loading(path: Path, gpus: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The loading of each recipe, by workers, and what the first GPU would take; None where nothing was measured."""
    if not path.is_file():
        return None
    content = read_json(path, AGAIN, keys=('device', 'results'))
    flops = {model['Name']: model['Metadata'].get('FLOPs') for model in read_models().values()}
    rows = []
    for (config, crop), found in pd.DataFrame(content['results']).groupby(['config', 'crop'], sort=False):
        runs = {row['workers']: np.array(row['runs']) for _, row in found.iterrows()}
        low, first, high = np.percentile(runs[min(runs)], (25, 50, 75))
        taken = [_taken(gpu, config, flops.get(config)) for gpu in gpus[:1] if not gpu['dry']]
        taken_rate, by = taken[0] if taken else (None, None)
        rows.append(
            dict(config=config, crop=crop, spread=(high - low) / first, taken=taken_rate, by=by)
            | {f'rate_{workers}': np.median(each) for workers, each in runs.items()}
            | dict(cores=taken_rate and taken_rate / first)
        )
    return dict(device=content['device'], rows=rows)


def _taken(gpu: dict[str, Any], config: str, flops: int | None) -> tuple[float | None, str | None]:
    """Images per second that a GPU trains on, and whether they were measured or counted."""
    tables = gpu['tables']
    if 'resnets' in tables:
        resnets = tables['resnets']
        found = resnets[(resnets['short'] == short_name(config)) & (resnets['kind'] == 'training')]
        if len(found):
            largest = found[found['batch'] == found['batch'].max()].iloc[0]  # the first is eager
            return float(largest['batch'] / largest['eager']), 'measured'
    if flops is None or 'ceilings' not in tables:
        return None, None
    return UTILISATION * float(tables['ceilings']['matmul'].iloc[0]) / (3 * 2 * flops), 'count'


def draw(folder: Path) -> dict[str, Figure]:
    """The page's figures, by their names."""
    speeds = read_all(folder)
    return {'scaling': draw_scaling(speeds), 'memory': draw_memory(speeds)}


def draw_scaling(speeds: pd.DataFrame) -> Figure:
    """Time against pixels, of necks and classifiers, and against tokens, on the CPU."""
    panels = [(x, name, what) for x, names in (('pixels', SCALING), ('tokens', TOKENS)) for name, what in names.items()]
    figure = Figure(figsize=(13, 13), layout='constrained')
    for axes, (x, name, what) in zip(figure.subplots(2, 2).flat, panels):
        draw_lines(axes, x, scale(speeds, name, x))
        axes.set_title(what)
    return figure


def draw_memory(speeds: pd.DataFrame) -> Figure:
    """Peak memory of a training step, VT beside what it replaces, on the CPU."""
    pairs = read_pairs(select(speeds, *MODELS)).query("kind == 'training'")
    figure = Figure(figsize=(9, 4.5), layout='constrained')
    axes = figure.subplots()
    places = np.arange(len(pairs))
    for offset, label, column in ((-0.2, 'replaced', 'first_peak_memory'), (0.2, 'VT', 'peak_memory')):
        bars = axes.bar(places + offset, pairs[column] / 1e6, 0.4, label=label)
        axes.bar_label(bars, fmt='%.0f', fontsize='small')
    axes.set_xticks(places, [f'{row.first_short}\n({row.part})' for row in pairs.itertuples()])
    axes.set_ylabel('peak memory of a training step, MB')
    axes.legend()
    return figure
