"""Images with any number of labels each, given by a table."""

import csv
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mmpretrain.datasets import MultiLabelDataset

from vt.errors import UserError
from vt.image_bounds import EXTENSIONS
from vt.registry import DATASETS
from vt.untrusted_text import composed, folded

NAMES = ('labels', 'label', 'classes', 'tags')  # headers of a column of class names
VALUES = {'0': False, '0.0': False, 'false': False, '': False, '1': True, '1.0': True, 'true': True}


@DATASETS.register_module()
class MultiLabelImages(MultiLabelDataset):
    """Images with any number of labels, including none. For lists in OpenMMLab's JSON use ``MultiLabelDataset``.

    Labels are given by a CSV file with a header, separated by commas, semicolons or tabs. The first column contains
    paths of images below ``data_prefix``. The second column is named ``labels`` and contains class names separated by
    ``;``, ``|`` or ``,``; or each further column is a class and contains 1 or 0.

    Args:
        ann_file: path of the table.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`. Without ``metainfo=dict(classes=...)`` the
            classes are those of the table, in alphabetical or numerical order.

    Raises:
        UserError: a line of the table is invalid; the message names the line.
    """

    def load_data_list(self) -> list[dict]:
        """Return one dict per image with its labels."""
        lines = Path(self.ann_file).read_text(encoding='utf-8-sig').splitlines()
        rows = csv.reader(lines, delimiter=max(',;\t', key=lines[0].count) if lines else ',')
        given = self.metainfo.get('classes')
        header = [composed(name.strip()) for name in next(rows, [])]
        self._check_header(header, given)
        images: dict[str, list[str]] = {}
        spelling = {folded(name): composed(name) for name in given or ()}
        for row in rows:
            if any(map(str.strip, row)):
                where, file = f'{self.ann_file}, line {rows.line_num}', os.path.normpath(row[0].strip())
                if len(row) != len(header):
                    raise UserError(f'{where} has {len(row)} columns, but the first line has {len(header)}')
                if file in images:
                    raise UserError(f'{where} names {file} again')
                if _is_of_names(header):
                    images[file] = [*_read_names(row[1], spelling, given is not None, where)]
                else:
                    images[file] = [*_read_values(row[1:], header[1:], where)]
        if not images:
            raise UserError(f'{self.ann_file} lists no images')
        found = {label for labels in images.values() for label in labels} if _is_of_names(header) else header[1:]
        classes = self._metainfo.setdefault('classes', tuple(_in_order(found)))
        numbers = {composed(name): label for label, name in enumerate(classes)}
        return [
            dict(img_path=os.path.join(self.img_prefix, file), gt_label=sorted({numbers[name] for name in labels}))
            for file, labels in images.items()
        ]

    def _check_header(self, header: Sequence[str], classes: Sequence[str] | None) -> None:
        if len(header) < 2 or len({*header}) < len(header) or header[0].lower().endswith(EXTENSIONS):
            words = 'must name the columns: file,labels, or file and each class once'
            raise UserError(f'{self.ann_file}, line 1 {words}')
        if classes is not None and not _is_of_names(header) and (odd := {*map(composed, classes)} ^ {*header[1:]}):
            words = f'{min(odd)!r} is a column or a class alone: use one column for each of the {len(classes)} classes'
            raise UserError(f'{self.ann_file}, line 1: {words}')


def _is_of_names(header: Sequence[str]) -> bool:
    return len(header) == 2 and header[1].lower() in NAMES


def _read_names(text: str, spelling: dict[str, str], are_given: bool, where: str) -> Iterator[str]:
    """Yield the class names of a line; ``spelling`` has those so far by their folded form, and gets new ones."""
    for name in filter(None, map(str.strip, re.split('[;|,]', composed(text)))):
        known = spelling.get(folded(name)) if are_given else spelling.setdefault(folded(name), name)
        if known != name and name not in spelling.values():
            others = 'the classes' if are_given else 'earlier lines'
            similar = f'have {known!r}: use the same spelling' if known else 'do not have it'
            raise UserError(f'{where} has the label {name[:80]!r}, but {others} {similar}')
        yield name


def _read_values(values: Sequence[str], classes: Sequence[str], where: str) -> Iterator[str]:
    """Yield the classes whose columns have 1 in a line."""
    for name, value in zip(classes, values):
        if value.strip().lower() not in VALUES:
            raise UserError(f'{where} has {value[:40]!r} in the column {name}, but must have 0 or 1')
        if VALUES[value.strip().lower()]:
            yield name


def _in_order(names: set[str] | Sequence[str]) -> list[str]:
    return sorted(names, key=int if all(name.isdecimal() for name in names) else None)
