"""Images with any number of labels each, given by a table."""

import csv
import os
import re
from collections import Counter
from typing import Literal

from mmpretrain.datasets import MultiLabelDataset

from vt.errors import UserError
from vt.files import read_lines
from vt.image_bounds import EXTENSIONS
from vt.private_names import name_classes
from vt.registry import DATASETS
from vt.untrusted_text import composed, folded

LABEL_HEADERS = ('labels', 'label', 'classes', 'tags')  # headers of a column of class names
VALUES = {'0': False, '0.0': False, 'false': False, '1': True, '1.0': True, 'true': True}
MISSING = ('', 'nan', 'na', 'n/a', 'none', 'null', '-1', '-1.0')  # a cell that nobody filled in, or was sure of


@DATASETS.register_module()
class MultiLabelImages(MultiLabelDataset):
    """Images with any number of labels, including none. For lists in OpenMMLab's JSON use ``MultiLabelDataset``.

    Labels are given by a CSV file with a header, separated by commas, semicolons or tabs. The first column contains
    paths of images below ``data_prefix``. The second column is named ``labels`` and contains class names separated by
    ``;``, ``|`` or ``,``; or each further column is a class and contains 1 or 0.

    Args:
        ann_file: path of the table.
        missing: ``'no'`` reads cells of classes that are blank, NaN or -1 as 0; they are refused by default.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`. Without ``metainfo=dict(classes=...)`` the
            classes are those of the table, in alphabetical or numerical order.

    Raises:
        UserError: a line of the table is invalid; the message names the line.
    """

    def __init__(self, ann_file: str, missing: Literal['refused', 'no'] = 'refused', **kwargs) -> None:
        self.missing = missing
        super().__init__(ann_file, **kwargs)

    def load_data_list(self) -> list[dict]:
        """Return one dict per image with its labels."""
        given = self.metainfo.get('classes')
        images, lines, columns = self._read_table()
        if given is not None and columns is not None and (odd := {*map(composed, given)} ^ {*columns}):
            words = (
                f'{min(odd)!r} is only a column or only a class: use one column for each of the {len(given)} classes'
            )
            raise UserError(f'{self.ann_file}, line 1: {words}')
        spelling = {folded(name): composed(name) for name in given or ()}
        for name, line in lines.items() if columns is None else ():
            known = spelling.get(folded(name)) if given is not None else spelling.setdefault(folded(name), name)
            if known != name and name not in spelling.values():
                others = 'the classes' if given is not None else 'earlier lines'
                similar = f'have {known!r}: use the same spelling' if known else 'do not have it'
                raise UserError(f'{self.ann_file}, line {line} has the label {name[:80]!r}, but {others} {similar}')
        found = lines if columns is None else columns
        in_order = sorted(found, key=int if all(name.isdecimal() for name in found) else None)
        name_classes(self, tuple(in_order))
        numbers = {composed(name): label for label, name in enumerate(self.metainfo['classes'])}
        return [
            dict(img_path=os.path.join(self.img_prefix, file), gt_label=sorted({numbers[name] for name in names}))
            for file, names in images.items()
        ]

    def _read_table(self) -> tuple[dict[str, list[str]], dict[str, int], list[str] | None]:
        """Return the class names of each image, the first line of each name, and the classes that have a column."""
        lines = read_lines(self.ann_file)
        rows = csv.reader(lines, delimiter=max(',;\t', key=next(filter(str.strip, lines), ',').count))
        header = [composed(name.strip()) for name in next(filter(None, rows), [])]
        if len(header) < 2 or len({*header}) < len(header) or header[0].lower().endswith(EXTENSIONS):
            words = 'must name the columns: file,labels, or file and each class once'
            raise UserError(f'{self.ann_file}, line 1 {words}')
        columns = None if len(header) == 2 and header[1].lower() in LABEL_HEADERS else header[1:]
        images: dict[str, list[str]] = {}
        first: dict[str, int] = {}
        missing: Counter[str] = Counter()
        for row in filter(lambda row: any(map(str.strip, row)), rows):
            where, file = f'{self.ann_file}, line {rows.line_num}', os.path.normpath(row[0].strip())
            if len(row) != len(header):
                raise UserError(f'{where} has {len(row)} columns, but the header has {len(header)}')
            if file in images:
                raise UserError(f'{where} names {file} again')
            if columns is None:
                images[file] = [*filter(None, map(str.strip, re.split('[;|,]', composed(row[1]))))]
            else:
                cells = {name: value.strip().lower() for name, value in zip(columns, row[1:])}
                missing.update(name for name, value in cells.items() if value in MISSING)
                images[file] = [name for name, value in cells.items() if _is_set(name, value, where)]
            for name in images[file]:
                first.setdefault(name, rows.line_num)
        if not images:
            raise UserError(f'{self.ann_file} lists no images')
        if missing and self.missing != 'no':
            name, number = missing.most_common(1)[0]
            found = f'{number} of {len(images)} images have a cell that is blank, NaN or -1 in the column {name}'
            others = f', and so have {len(missing) - 1} more columns' if len(missing) > 1 else ''
            advice = "if that means 0, set missing='no' of the data set, else leave these images out"
            raise UserError(f'{self.ann_file}: {found}{others}: {advice}')
        return images, first, columns


def _is_set(name: str, value: str, where: str) -> bool:
    """Return whether the column of a class has 1; UserError if it has neither 0 nor 1."""
    if value not in VALUES and value not in MISSING:
        raise UserError(f'{where} has {value[:40]!r} in the column {name}, but must have 0 or 1')
    return VALUES.get(value, False)
