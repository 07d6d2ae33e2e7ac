"""Images with any number of labels each, given by a table."""

import os
import re
from collections import Counter
from typing import Literal

from mmpretrain.datasets import MultiLabelDataset

from vt.errors import UserError
from vt.private_names import name_classes
from vt.registry import DATASETS
from vt.untrusted_text import composed

from .image_tables import LABEL_HEADERS, check_spelling, first_lines, read_split, sort_names

VALUES = {'0': False, '0.0': False, 'false': False, '1': True, '1.0': True, 'true': True}
MISSING = ('', 'nan', 'na', 'n/a', 'none', 'null', '-1', '-1.0')  # a cell that nobody filled in, or was sure of


@DATASETS.register_module()
class MultiLabelImages(MultiLabelDataset):
    """Images with any number of labels, including none. For lists in OpenMMLab's JSON use ``MultiLabelDataset``.

    Labels are given by a CSV file with a header, separated by commas, semicolons or tabs. One column, named as for
    :class:`vt.ImageTable` or else the first, contains paths of images below ``data_prefix``. The other column is named
    ``labels`` and contains class names separated by ``;``, ``|`` or ``,``; or each other column is a class and contains
    1 or 0.

    Args:
        ann_file: path of the table.
        missing: ``'no'`` reads cells of classes that are blank, NaN or -1 as 0; they are refused by default.
        split: see :class:`vt.ImageTable`.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`. Without ``metainfo=dict(classes=...)`` the
            classes are those of the table, in alphabetical or numerical order.

    Raises:
        UserError: a line of the table is invalid; the message names the line.
    """

    def __init__(
        self, ann_file: str, missing: Literal['refused', 'no'] = 'refused', split: str | None = None, **kwargs
    ) -> None:
        self.missing, self.split = missing, split
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
        if columns is None:
            check_spelling(self.ann_file, lines, given)
        name_classes(self, tuple(sort_names(lines if columns is None else columns)))
        numbers = {composed(name): label for label, name in enumerate(self.metainfo['classes'])}
        return [
            dict(img_path=os.path.join(self.img_prefix, file), gt_label=sorted({numbers[name] for name in names}))
            for file, names in images
        ]

    def _read_table(self) -> tuple[list[tuple[str, list[str]]], dict[str, int], list[str] | None]:
        """Return file and class names of each image, the first line of each name, and classes that have a column."""
        header, rows = read_split(self.ann_file, self.split)
        columns = None if len(header) == 1 and header[0].lower() in LABEL_HEADERS else header
        images: list[tuple[str, list[str]]] = []
        missing: Counter[str] = Counter()
        for row in rows:
            if columns is None:
                names = split_labels(row.cells[0])
            else:
                cells = {name: value.strip().lower() for name, value in zip(columns, row.cells)}
                missing.update(name for name, value in cells.items() if value in MISSING)
                names = [name for name, value in cells.items() if _is_set(name, value, row.where)]
            images.append((row.file, names))
        if missing and self.missing != 'no':
            name, number = missing.most_common(1)[0]
            found = f'{number} of {len(images)} images have a cell that is blank, NaN or -1 in the column {name}'
            others = f', and so have {len(missing) - 1} more columns' if len(missing) > 1 else ''
            advice = "if that means 0, set missing='no' of the data set, else leave these images out"
            raise UserError(f'{self.ann_file}: {found}{others}: {advice}')
        return images, first_lines(rows, (names for _, names in images)), columns


def split_labels(cell: str) -> list[str]:
    """Return the class names in a cell, which are separated by ``;``, ``|`` or ``,``."""
    return [*filter(None, map(str.strip, re.split('[;|,]', composed(cell))))]


def _is_set(name: str, value: str, where: str) -> bool:
    """Return whether the column of a class has 1; UserError if it has neither 0 nor 1."""
    if value not in VALUES and value not in MISSING:
        raise UserError(f'{where} has {value[:40]!r} in the column {name}, but must have 0 or 1')
    return VALUES.get(value, False)
