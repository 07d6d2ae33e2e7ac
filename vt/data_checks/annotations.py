"""Lines of an annotation file that don't parse, by their numbers."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from mmengine.dataset import BaseDataset

from vt.video.lists import check_lines, read_kinetics

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
    elif hasattr(dataset, 'read_table'):
        found = dataset.read_table().problems
    elif getattr(dataset, 'is_kinetics', False):
        found = read_kinetics(path, dataset.metainfo.get('classes'), dataset.with_label).problems
    elif type(dataset).load_data_list.__module__ in LINES:
        found = check_lines(path.read_bytes(), getattr(dataset, 'with_label', False), num_classes)
    return [Problem('annotation', str(path), message, line) for line, message in found]


def _check_json(path: Path) -> Iterator[tuple[int | None, str]]:
    try:
        json.loads(path.read_bytes())
    except json.JSONDecodeError as error:
        yield error.lineno, f'{error.msg} (column {error.colno})'
    except UnicodeDecodeError:
        yield None, 'is not a text in UTF-8'
