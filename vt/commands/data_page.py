"""The page of ``tools/check_dataset.py --out FOLDER``: description and samples of the data in one file."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from vt.analysis.figures import image_address, shrink
from vt.data_checks.data import Source
from vt.data_checks.samples import Sample
from vt.datasets.bands import as_rgb
from vt.files import write_atomically
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


def write_page(path: Path, config: str, report: dict, sources: Sequence[Source], bgr: bool) -> None:
    """Write the page.

    Args:
        path: path of the page.
        config: path of the config.
        report: result of :func:`vt.commands.check_dataset.read_data`.
        sources: the data sets and their samples.
        bgr: whether images in memory have OpenCV's channel order.
    """
    problems = [(name, report[name]) for name in ('problems', 'warnings') if report[name]]
    text = TEMPLATES.get_template('data_page.html.j2').render(
        config=printable(config),
        side=SIDE,
        counts=report['counts'],
        data_sets=report['data_sets'],
        problems=[(name, [printable(in_line(each), 1000) for each in found[:LINES]]) for name, found in problems],
        rows=[{key: printable(value, MAX_NAME) for key, value in row.items()} for row in report['classes'][:ROWS]],
        groups=[group for source in sources if source.labels for group in _groups(source, bgr)],
    )
    write_atomically(path, text)


def in_line(problem: dict[str, str]) -> str:
    """Return a problem of a report as one line."""
    return f'{problem["split"]}: {problem["file"]} {problem["message"]}'


def _groups(source: Source, bgr: bool) -> Iterator[tuple[str, list[Thumbnail]]]:
    """Yield the title and some samples of each shown class; one group for data without labels."""
    samples, present = source.samples, source.labels.present[:CLASSES]
    for label in present:
        of_class = (index for index, sample in samples.items() if label in _labels(sample))
        yield f'{source.split}: {printable(source.labels.name(label), MAX_NAME)}', _thumbnails(source, of_class, bgr)
    if not present:
        yield f'{source.split}: without labels', _thumbnails(source, samples, bgr)


def _labels(sample: Sample) -> list[int]:
    return sample.labels if sample.counts is None else sample.counts.nonzero()[0].tolist()


def _thumbnails(source: Source, indices: Iterable[int], bgr: bool) -> list[Thumbnail]:
    whole = (index for index in indices if not source.samples[index].problems)
    return [
        (printable(Path(source.samples[index].path).name or f'sample {index}', MAX_NAME), _draw(source, index, bgr))
        for index in islice(whole, EACH)
    ]


def _draw(source: Source, index: int, bgr: bool) -> str:
    """Draw a sample as a thumbnail: the first frame of a video; an image with the colours of its mask."""
    reader, info = source.reader, dict(source.dataset.get_data_info(index), seg_fields=[])
    mask = info.get('gt_seg_map') if reader.load_mask is None else reader.load_mask(dict(info))['gt_seg_map']
    if reader.load_clips:
        image, bgr = open_video(info['img_path']).read([0])[0], True
    else:
        image, bgr = (info['img'], bgr) if reader.load_image is None else (reader.load_image(info)['img'], True)
    image = as_rgb(np.atleast_3d(image))
    image = shrink(np.ascontiguousarray(image[..., ::-1] if bgr else image), SIDE)
    if mask is not None:
        mask = cv2.resize(mask.astype(np.uint8), image.shape[1::-1], interpolation=cv2.INTER_NEAREST)
        image = colour(image, mask, source.dataset.metainfo.get('palette'))
    return image_address(image)


def colour(image: np.ndarray, labels: np.ndarray, palette: Sequence | None) -> np.ndarray:
    """Lay the colours of labels ``(height, width)`` over an RGB image of this size; those without colour are white."""
    colours = np.full((2**16, 3), 255, np.uint8)
    colours[: len(palette or [])] = np.reshape(palette or [], (-1, 3))
    return (0.5 * image + 0.5 * colours[labels]).astype(np.uint8)
