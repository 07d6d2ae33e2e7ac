"""The page of ``tools/check_dataset.py --out FOLDER``: description and samples of the data in one file."""

import base64
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure

from vt.analysis.figures import render_figure
from vt.checkpoints.files import write_atomically
from vt.data_checks.data import Source
from vt.data_checks.samples import Load, Sample
from vt.untrusted_text import printable
from vt.video.decoders import open_video

SIDE = 144  # of a thumbnail, in pixels
CLASSES, EACH = 24, 4  # classes per split that are shown, and samples of each
ROWS, LINES, BARS = 500, 200, 60  # classes in the table, problems, and classes in the histogram
MAX_NAME = 80
TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)
Thumbnail = tuple[str, str]  # name of a file, and the image as a data URL


def write_page(
    path: Path,
    config: str,
    report: dict,
    sources: Sequence[Source],
    verdicts: list[tuple[str, str, str]],
    data_sets: list[str],
    bgr: bool,
) -> None:
    """Write the page.

    Args:
        path: path of the page.
        config: path of the config.
        report: result of :func:`vt.data_checks.data_report.read_data`.
        sources: the data sets and their samples.
        verdicts: result of :func:`vt.commands.check_dataset.verdicts`.
        data_sets: one line per data set.
        bgr: whether images in memory have OpenCV's channel order.
    """
    rows, lists = report['classes'], {}
    for name in ('problems', 'warnings'):
        lists[name] = [{key: value and printable(value, 500) for key, value in each.items()} for each in report[name]]
        lists[f'hidden_{name}'] = max(0, len(lists[name]) - LINES)
        lists[name] = lists[name][:LINES]
    text = TEMPLATES.get_template('data_page.html.j2').render(
        config=printable(config),
        side=SIDE,
        verdicts=verdicts,
        data_sets=data_sets,
        rows=[{key: printable(value, MAX_NAME) for key, value in row.items()} for row in rows[:ROWS]],
        hidden_rows=max(0, len(rows) - ROWS),
        histogram=_draw_histogram(rows) if rows else '',
        groups=[group for source in sources for group in _groups(source, bgr)],
        overlaid=any(sample.counts is not None for source in sources for sample in source.samples),
        **lists,
    )
    write_atomically(path, text)


def _draw_histogram(rows: list[dict[str, str]]) -> str:
    """Draw bars for the first classes, one colour per split, on a logarithmic scale if counts differ much."""
    splits, shown = [name for name in rows[0] if name not in ('label', 'name')], rows[:BARS]
    counts = np.array([[int(row[split].replace(',', '')) for row in shown] for split in splits])
    figure = Figure(figsize=(max(4, 1.5 + 0.3 * len(shown) * len(splits)), 3.6), layout='constrained')
    axes = figure.subplots()
    width = 0.8 / len(splits)
    for index, split in enumerate(splits):
        axes.bar(np.arange(len(shown)) + (index - (len(splits) - 1) / 2) * width, counts[index], width, label=split)
    if counts.max() > 50 * max(1, counts[counts > 0].min(initial=counts.max())):
        axes.set_yscale('log')
    names = [printable(row['name'], 20) for row in shown]
    axes.set_xticks(range(len(shown)), names, rotation=90, fontsize=7, parse_math=False)
    axes.set_ylabel('samples, or pixels of masks')
    axes.legend()
    return figure_address(figure)


def _groups(source: Source, bgr: bool) -> Iterator[tuple[str, list[Thumbnail]]]:
    """Yield the title and some samples of each shown class; one group for data without labels."""
    names, samples = source.dataset.metainfo.get('classes'), source.samples
    labels = {label for sample in samples for label in _labels(sample)}
    for label in [*range(min(CLASSES, len(names)))] if names else sorted(labels)[:CLASSES]:
        of_class = (index for index, sample in enumerate(samples) if label in _labels(sample))
        title = f'{source.split}: {printable(names[label] if names else label, MAX_NAME)}'
        yield title, _thumbnails(source, of_class, bgr)
    if names and len(names) > CLASSES:
        yield f'{source.split}: {len(names) - CLASSES} more classes are not shown', []
    if not labels and samples:
        yield f'{source.split}: without labels', _thumbnails(source, iter(range(len(samples))), bgr)


def _labels(sample: Sample) -> list[int]:
    return sample.labels if sample.counts is None else sample.counts.nonzero()[0].tolist()


def _thumbnails(source: Source, indices: Iterator[int], bgr: bool) -> list[Thumbnail]:
    thumbnails, samples = [], source.samples
    for index in islice((index for index in indices if not samples[index].problems), EACH):
        name = printable(Path(samples[index].path).name, MAX_NAME) if source.has_files else f'sample {index}'
        thumbnails.append((name, _draw(source, source.dataset.get_data_info(index), bgr)))
    return thumbnails


def _draw(source: Source, info: dict[str, Any], bgr: bool) -> str:
    """Draw a sample as a thumbnail: the first frame of a video; an image with the colours of its mask."""
    reader = source.reader
    if reader.load_clips:
        image, bgr = open_video(info['img_path'], reader.load_clips.decoder).read([0])[0], True
    elif reader.load_image:
        image, bgr = _load(reader.load_image, info)['img'], True
    else:
        image = info['img']
    image = np.atleast_3d(image)[..., :3].astype(np.uint8)
    image = image.repeat(3, axis=2) if image.shape[2] == 1 else image[..., ::-1] if bgr else image
    scale = SIDE / max(image.shape[:2])
    size = [max(1, round(scale * side)) for side in image.shape[1::-1]]
    image = cv2.resize(np.ascontiguousarray(image), size, interpolation=cv2.INTER_AREA)
    mask = _load(reader.load_mask, info)['gt_seg_map'] if reader.load_mask else info.get('gt_seg_map')
    if mask is not None:
        colours = np.full((256, 3), 255, np.uint8)
        palette = np.array(source.dataset.metainfo.get('palette') or np.zeros((0, 3)), np.uint8)[:256]
        colours[: len(palette)] = palette
        small = cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)
        image = (0.5 * image + 0.5 * colours[small]).astype(np.uint8)
    return image_address(image)


def _load(step: Load, info: dict[str, Any]) -> dict[str, Any]:
    return step(dict(info, seg_fields=[]))


def figure_address(figure: Figure) -> str:
    """Return a figure as a data URL."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', UserWarning)  # about characters that are missing in the font
        return _address(render_figure(figure, dpi=90), 'png')


def image_address(image: np.ndarray) -> str:
    """Return an RGB image ``(height, width, 3)`` of uint8 as a data URL."""
    return _address(cv2.imencode('.jpg', image[..., ::-1])[1].tobytes(), 'jpeg')


def _address(content: bytes, kind: str) -> str:
    return f'data:image/{kind};base64,{base64.b64encode(content).decode()}'
