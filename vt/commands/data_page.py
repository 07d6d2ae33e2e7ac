"""The page of ``vt check-dataset --out FOLDER``: description and samples of the data in one file."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from vt.analysis.figures import image_address, shrink
from vt.data_checks.data import Source
from vt.data_checks.samples import Sample
from vt.datasets.bands import as_rgb
from vt.engine.hooks.visualization import colour
from vt.files import write_atomically
from vt.pages import render
from vt.video.decoders import open_video

SIDE = 144  # of a thumbnail, in pixels
CLASSES, EACH = 24, 4  # classes per split that are shown, and samples of each
ROWS, LINES = 500, 200  # classes in the table, and problems
Thumbnail = tuple[str, str]  # name of a file, and the image as a data URL


def in_line(problem: dict[str, str]) -> str:
    """Return a problem of a report as one line."""
    return f'{problem["split"]}: {problem["file"]} {problem["message"]}'


def write_page(path: Path, config: str, report: dict, sources: Sequence[Source], bgr: bool) -> None:
    """Write the page of a config: the result of :func:`vt.commands.check_dataset.read_data`, and some samples.

    ``bgr`` tells whether images in memory have OpenCV's channel order.
    """
    groups = [group for source in sources if source.labels for group in _groups(source, bgr)]
    problems = {name: [in_line(each) for each in report[name][:LINES]] for name in ('problems', 'warnings')}
    page = dict(config=config, side=SIDE, report=report, problems=problems, groups=groups, rows=ROWS)
    write_atomically(path, render('commands/data_page.html.j2', **page))


def _groups(source: Source, bgr: bool) -> Iterator[tuple[str, list[Thumbnail]]]:
    """Yield the title and some samples of each shown class; one group for data without labels."""
    labels: Any = source.labels  # they have been read
    for label in labels.present[:CLASSES] or [None]:
        title = 'without labels' if label is None else labels.name(label)
        whole = ((index, each) for index, each in source.samples.items() if not each.problems)
        shown = islice(((index, each) for index, each in whole if label in (None, *_labels(each))), EACH)
        names = {index: Path(each.path).name or f'sample {index}' for index, each in shown}
        yield f'{source.split}: {title}', [(name, _draw(source, index, bgr)) for index, name in names.items()]


def _labels(sample: Sample) -> list[int]:
    return sample.labels if sample.counts is None else sample.counts.nonzero()[0].tolist()


def _draw(source: Source, index: int, bgr: bool) -> str:
    """Draw a sample as a thumbnail: the first frame of a video; an image with the colours of its mask."""
    reader, info = source.reader, dict(source.dataset.get_data_info(index), seg_fields=[])
    mask: Any = info.get('gt_seg_map') if reader.load_mask is None else reader.load_mask(dict(info))['gt_seg_map']
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
