"""Find lines of annotation files that cannot be parsed."""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.dataset import BaseDataset

from vt.untrusted_text import printable

from .samples import Problem

# Modules whose data sets read one sample per line.
JSON = ('mmengine.dataset.base_dataset', 'mmpretrain.datasets.base_dataset', 'mmpretrain.datasets.multi_label')
LINES = ('mmpretrain.datasets.custom', 'mmseg.datasets.basesegdataset', 'vt.video.dataset')


def find_annotation_problems(dataset: BaseDataset, num_classes: int | None) -> list[Problem]:
    """Return the problems of a data set's annotation file; empty for a data set without one.

    A line of MMPretrain is the path of an image, a space and a label; one of MMSegmentation is a name without suffix.
    Windows line ends, names with spaces and absolute paths are accepted.

    Args:
        dataset: the data set.
        num_classes: number of classes; labels must be below it. None if it is unknown.
    """
    path = Path(str(dataset.ann_file or ''))
    if not dataset.ann_file or '://' in str(dataset.ann_file) or path.is_dir():
        return []
    if not path.is_file():
        return [Problem('missing', str(path), 'there is no such annotation file')]
    found: Iterable[tuple[int | None, str]] = []
    loader = type(dataset).load_data_list.__module__
    if path.suffix == '.json' and loader == LINES[0]:
        words = "is JSON, but CustomDataset reads a path and a label per line: use a list, or OpenMMLab's JSON and "
        found = [(None, f"{words}type='mmpretrain.BaseDataset'")]
    elif path.suffix == '.json':
        found = _check_json(path, loader in JSON)
    elif hasattr(dataset, 'read_table'):
        found = dataset.read_table().problems
    elif loader in LINES and not getattr(dataset, 'is_kinetics', False):
        found = check_lines(path.read_bytes(), getattr(dataset, 'with_label', False), num_classes)
    return [Problem('annotation', str(path), message, line) for line, message in found]


def _check_json(path: Path, of_openmmlab: bool) -> Iterator[tuple[int | None, str]]:
    try:
        content = json.loads(path.read_bytes())
    except json.JSONDecodeError as error:
        yield error.lineno, f'{error.msg} (column {error.colno})'
    except UnicodeDecodeError:
        yield None, 'is not text in UTF-8'
    else:
        if of_openmmlab:
            yield from _check_items(content)


def _check_items(content: Any) -> Iterator[tuple[int | None, str]]:
    """Yield the problems of OpenMMLab's format, which is only asserted when it is read."""
    if not isinstance(content, dict) or not {'metainfo', 'data_list'} <= content.keys():
        yield None, 'is not in the format of OpenMMLab, {"metainfo": {"classes": [...]}, "data_list": [...]}'
        return
    for number, item in enumerate(content['data_list']):
        if not isinstance(item, dict) or not isinstance(item.get('img_path'), str):
            yield None, f'has no img_path in item {number} of data_list'
        elif any(type(label) is not int for label in np.ravel(item.get('gt_label', ())).tolist()):
            yield None, f'has the gt_label {item["gt_label"]!r} in item {number} of data_list: write numbers of classes'


def check_lines(content: bytes, with_label: bool, num_classes: int | None) -> Iterator[tuple[int | None, str]]:
    """Yield the problems of a list: the number of the line, None for the whole file, and what is wrong."""
    if not content.strip():
        yield None, 'is empty'
        return
    if content.startswith(BOM_UTF8):
        yield 1, 'begins with a byte order mark: save it as UTF-8 without one'
    seen: dict[bytes, tuple[int, bytes]] = {}  # number and label of the first line of each file
    for number, line in enumerate(content.removeprefix(BOM_UTF8).splitlines(), start=1):
        message = _check_line(line, with_label, num_classes)
        if not message and with_label:
            name, _, label = line.strip().rpartition(b' ')
            first, known = seen.setdefault(name, (number, label))
            if known != label:
                shown = f'{printable(name.decode(), 200)} the label {label.decode()}'
                message = f'gives {shown}, but line {first} gives it {known.decode()}'
        if message:
            yield number, message


def _check_line(content: bytes, with_label: bool, num_classes: int | None) -> str | None:
    """Return what is wrong with a line, which is split as in MMPretrain; None if nothing is."""
    try:
        line = content.decode('utf-8')
    except UnicodeDecodeError:
        return 'is not in UTF-8'
    line = line.strip()
    control = re.search(r'[\x00-\x08\x0b-\x1f\x7f]', line)
    if control:
        return f'holds the control character {control.group()!r}'
    if not line:
        return 'is empty'
    if not with_label:
        return None
    name, _, label = line.rpartition(' ')
    if not name.strip():
        return f'is {line[:80]!r}, without a label: write a path, a space and a label'
    if not re.fullmatch(r'[+-]?\d{1,9}', label):
        return f'ends in {label[:40]!r}, which is not a label: write an integer after the last space'
    value = int(label)
    if value < 0:
        return f'has the label {value}: labels start at 0'
    if num_classes is not None and value >= num_classes:
        return f'has the label {value}, outside the {num_classes} classes (0 to {num_classes - 1})'
    return None
