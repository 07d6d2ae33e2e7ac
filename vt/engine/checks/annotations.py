"""Lines of an annotation file that don't parse, by their numbers."""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from pathlib import Path

from mmengine.dataset import BaseDataset

from vt.video.dataset import read_kinetics

from .samples import Problem

# Modules that read a sample a line.
LINES = ('mmpretrain.datasets.custom', 'mmseg.datasets.basesegdataset', 'vt.video.dataset')


def find_annotation_problems(dataset: BaseDataset, num_classes: int | None) -> list[Problem]:
    """What is wrong with a data set's annotation file; an empty list for a data set without one.

    MMPretrain's lines are an image's path, a space and its label, below ``num_classes`` if that is known;
    MMSegmentation's are names without a suffix. Windows' line ends, names with spaces and absolute paths are fine.
    """
    path = Path(str(dataset.ann_file or ''))
    if not dataset.ann_file or '://' in str(dataset.ann_file) or path.is_dir():
        return []
    if not path.is_file():
        return [Problem('missing', str(path), 'there is no such annotation file')]
    found: Iterable[tuple[int | None, str]] = []
    if path.suffix == '.json':
        found = _check_json(path)
    elif getattr(dataset, 'is_kinetics', False):
        found = read_kinetics(path, dataset.metainfo.get('classes'), dataset.with_label).problems
    elif type(dataset).load_data_list.__module__ in LINES:
        found = _check_text(path.read_bytes(), getattr(dataset, 'with_label', False), num_classes)
    return [Problem('annotation', str(path), message, line) for line, message in found]


def _check_json(path: Path) -> Iterator[tuple[int | None, str]]:
    try:
        json.loads(path.read_bytes())
    except json.JSONDecodeError as error:
        yield error.lineno, f'{error.msg} (column {error.colno})'
    except UnicodeDecodeError:
        yield None, 'is not a text in UTF-8'


def _check_text(content: bytes, with_label: bool, num_classes: int | None) -> Iterator[tuple[int | None, str]]:
    if not content.strip():
        yield None, 'is empty'
        return
    if content.startswith(BOM_UTF8):
        yield 1, 'begins with a byte order mark: save it as UTF-8 without one'
    for number, line in enumerate(content.removeprefix(BOM_UTF8).splitlines(), start=1):
        message = _check_line(line, with_label, num_classes)
        if message:
            yield number, message


def _check_line(content: bytes, with_label: bool, num_classes: int | None) -> str | None:
    """What is wrong with a line; it is split as MMPretrain splits it."""
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
        return f'is {line[:80]!r}, without a label: a path, a space and a label are needed'
    try:
        value = int(label)
    except ValueError:
        return f'ends in {label[:40]!r}, which is no label: a whole number is needed after the last space'
    if value < 0:
        return f'has the label {value}: labels begin at 0'
    if num_classes is not None and value >= num_classes:
        return f'has the label {value}, outside the {num_classes} classes (0 to {num_classes - 1})'
    return None
