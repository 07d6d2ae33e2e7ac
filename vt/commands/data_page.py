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
ROWS, LINES = 500, 200  # classes in the table, and problems
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
    data_sets: list[str],
    bgr: bool,
) -> None:
    """Write the page.

    Args:
        path: path of the page.
        config: path of the config.
        report: result of :func:`vt.data_checks.data_report.read_data`.
        sources: the data sets and their samples.
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
        counts=report['counts'],
        data_sets=data_sets,
        rows=[{key: printable(value, MAX_NAME) for key, value in row.items()} for row in rows[:ROWS]],
        hidden_rows=max(0, len(rows) - ROWS),
        groups=[group for source in sources for group in _groups(source, bgr)],
        overlaid=any(sample.counts is not None for source in sources for sample in source.samples),
        **lists,
    )
    write_atomically(path, text)


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
        image, bgr = open_video(info['img_path']).read([0])[0], True
    elif reader.load_image:
        image, bgr = _load(reader.load_image, info)['img'], True
    else:
        image = info['img']
    image = np.atleast_3d(image)[..., :3].astype(np.uint8)
    image = image.repeat(3, axis=2) if image.shape[2] == 1 else image[..., ::-1] if bgr else image
    mask = _load(reader.load_mask, info)['gt_seg_map'] if reader.load_mask else info.get('gt_seg_map')
    image = shrink(np.ascontiguousarray(image), SIDE)
    if mask is not None:
        mask = cv2.resize(mask.astype(np.uint8), image.shape[1::-1], interpolation=cv2.INTER_NEAREST)
        image = colour(image, mask, source.dataset.metainfo.get('palette'))
    return image_address(image)


def shrink(image: np.ndarray, side: int) -> np.ndarray:
    """Resize an image so that its longer side has this number of pixels; small images are enlarged."""
    scale = side / max(image.shape[:2])
    size = [max(1, round(scale * each)) for each in image.shape[1::-1]]
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST)


def colour(image: np.ndarray, labels: np.ndarray, palette: Sequence | None) -> np.ndarray:
    """Lay the colours of labels ``(height, width)`` over an RGB image of this size; those without colour are white."""
    colours = np.full((2**16, 3), 255, np.uint8)
    colours[: len(palette or [])] = np.reshape(palette or [], (-1, 3))
    return (0.5 * image + 0.5 * colours[labels]).astype(np.uint8)


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
