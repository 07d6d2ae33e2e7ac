"""Tables of images: their lines, and images with one label each."""

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mmpretrain.datasets import BaseDataset

from vt.errors import UserError
from vt.files import read_lines
from vt.image_bounds import EXTENSIONS
from vt.private_names import name_classes
from vt.registry import DATASETS
from vt.untrusted_text import composed, folded, printable

from .folder_contents import SPLIT_OF

FILE_HEADERS = ('file', 'filename', 'file_name', 'image', 'path', 'image_path')
SPLIT_HEADER = 'split'
LABEL_HEADERS = ('label', 'class', 'category', 'labels', 'classes', 'tags')  # headers of a column of class names


class Row(NamedTuple):
    """A line of a table, which is about one image."""

    where: str  # table and number of the line, for messages
    line: int
    file: str
    split: str | None  # 'train', 'val' or 'test'
    cells: list[str]  # without those of the file and the split


class Table(NamedTuple):
    """A table of images."""

    file_header: str  # header of the column of files
    names: list[str]  # headers of the columns without those of files and splits
    rows: list[Row]


def read_table(path: str | os.PathLike, with_splits: bool = False) -> Table:
    """Read a table of images with a header, whose columns are separated by commas, semicolons or tabs.

    The column of files is the first one with a header in ``FILE_HEADERS``, else the first one.

    Args:
        path: the table.
        with_splits: whether a column ``split`` has the split of each image; otherwise it is a column like others.

    Raises:
        UserError: a line is invalid, or names an image of a split again; the message names the line.
    """
    lines = read_lines(path)
    reader = csv.reader(lines, delimiter=max(',;\t', key=next(filter(str.strip, lines), ',').count))
    try:
        header = [composed(name.strip()) for name in next(filter(None, reader), [])]
        cells_of_lines = [(reader.line_num, row) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        raise UserError(f'{path}, line {reader.line_num} is not of a table: {error}') from error
    if len(header) < 2 or len({*header}) < len(header) or header[0].lower().endswith(EXTENSIONS):
        raise UserError(
            f'{path}, line 1 must name the columns: file,labels, or file,label, or file and each class once'
        )
    places = {name.lower(): place for place, name in reversed([*enumerate(header)])}
    files = min((places[name] for name in FILE_HEADERS if name in places), default=0)
    splits = places.get(SPLIT_HEADER) if with_splits else None
    kept = [place for place in range(len(header)) if place not in (files, splits)]
    rows: dict[tuple[str, str | None], Row] = {}
    for number, cells in cells_of_lines:
        where = f'{path}, line {number}'
        if len(cells) != len(header):
            raise UserError(f'{where} has {len(cells)} columns, but the header has {len(header)}')
        file, split = os.path.normpath(cells[files].strip()), None
        if splits is not None and (split := SPLIT_OF.get(cells[splits].strip().lower())) is None:
            raise UserError(f'{where} has the split {printable(cells[splits], 40)!r}: write train, val or test')
        if (file, split) in rows:
            raise UserError(f'{where} names {file} again')
        rows[file, split] = Row(where, number, file, split, [cells[place] for place in kept])
    if not rows:
        raise UserError(f'{path} lists no images')
    return Table(header[files], [header[place] for place in kept], [*rows.values()])


def read_split(path: str | os.PathLike, split: str | None) -> tuple[list[str], list[Row]]:
    """Read the rows of a split of a table, or all rows without ``split``; errors as of :func:`read_table`."""
    _, names, rows = read_table(path, split is not None)
    own = [row for row in rows if split in (None, row.split)]
    if not own:
        found = ', '.join(sorted({row.split for row in rows if row.split}))
        advice = f'only of {found}' if found else f'for it has no column {SPLIT_HEADER}'
        raise UserError(f'{path} has no images of split={split!r}, {advice}')
    return names, own


def check_spelling(path: str, lines: Mapping[str, int], classes: Iterable[str] | None) -> None:
    """Raise a UserError if class names differ in case only, or are not in ``classes``, if given.

    Args:
        path: the table.
        lines: the first line of each name.
        classes: all class names.
    """
    spelling = {folded(name): composed(name) for name in classes or ()}
    for name, line in lines.items():
        known = spelling.get(folded(name)) if classes is not None else spelling.setdefault(folded(name), name)
        if known != name and name not in spelling.values():
            others = 'the classes' if classes is not None else 'earlier lines'
            similar = f'have {known!r}: use the same spelling' if known else 'do not have it'
            raise UserError(f'{path}, line {line} has the label {name[:80]!r}, but {others} {similar}')


def first_lines(rows: Iterable[Row], names: Iterable[Iterable[str]]) -> dict[str, int]:
    """Return the first line of each class name, given the names of each row."""
    lines: dict[str, int] = {}
    for row, own in zip(rows, names):
        for name in own:
            lines.setdefault(name, row.line)
    return lines


def sort_names(names: Iterable[str]) -> list[str]:
    """Return class names in alphabetical order, or numerical order if all are numbers."""
    names = {*names}
    return sorted(names, key=int if all(name.isdecimal() for name in names) else None)


def find_label_column(names: Sequence[str]) -> int | None:
    """Return the place of the column of class names; None if there is none, or several."""
    found = [place for place, name in enumerate(names) if name.lower() in LABEL_HEADERS]
    return found[0] if len(found) == 1 else None


@DATASETS.register_module()
class ImageTable(BaseDataset):
    """Images with one label each, by a table. For several labels per image use :class:`vt.MultiLabelImages`.

    The table is a CSV file with a header, separated by commas, semicolons or tabs. A column named ``file``,
    ``filename``, ``image``, ``path`` or ``image_path`` contains paths of images below ``data_prefix``, and one named
    ``label``, ``class`` or ``category`` contains class names or numbers of classes. Other columns are not used.

    Args:
        ann_file: path of the table.
        split: use the images with this split in the column ``split``, ``'train'``, ``'val'`` or ``'test'``; all images
            by default.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`. Without ``metainfo=dict(classes=...)`` the
            classes are the labels of the table, in alphabetical or numerical order. With classes, labels that are not
            among them may be their numbers, from 0.

    Raises:
        UserError: a line of the table is invalid, or there are no images of the split; the message names the line.
    """

    def __init__(self, ann_file: str, split: str | None = None, **kwargs) -> None:
        self.split = split
        super().__init__(ann_file, **kwargs)

    def load_data_list(self) -> list[dict]:
        """Return one dict per image with its label."""
        names, rows = read_split(self.ann_file, self.split)
        column, classes = find_label_column(names), self.metainfo.get('classes')
        if column is None:
            raise UserError(f'{self.ann_file}, line 1 must name one column label, beside that of the files')
        labels = [composed(row.cells[column].strip()) for row in rows]
        if '' in labels:
            raise UserError(f'{rows[labels.index("")].where} has no label')
        numbers = {composed(name): number for number, name in enumerate(classes or sort_names(labels))}
        if classes is not None:
            numbers = {str(number): number for number in range(len(classes))} | numbers
        check_spelling(self.ann_file, first_lines(rows, ([label] for label in labels)), classes and numbers)
        name_classes(self, tuple(numbers))
        return [
            dict(img_path=os.path.join(self.img_prefix, row.file), gt_label=numbers[label])
            for label, row in zip(labels, rows)
        ]
