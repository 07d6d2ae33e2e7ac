"""Images with any number of labels each, given by a table or by class folders."""

import csv
import filecmp
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mmpretrain.datasets import MultiLabelDataset

from vt.errors import UserError
from vt.folders import files_below, find_similar
from vt.image_bounds import EXTENSIONS
from vt.registry import DATASETS
from vt.untrusted_text import composed, folded

NAMES = ('labels', 'label', 'classes', 'tags')  # headers of a column of class names
VALUES = {'0': False, '0.0': False, 'false': False, '': False, '1': True, '1.0': True, 'true': True}


@dataclass
class LabelTable:
    """Content of a table."""

    files: list[str] = field(default_factory=list)  # paths of the images
    labels: list[list[str]] = field(default_factory=list)  # class names of each image
    classes: list[str] = field(default_factory=list)
    problems: list[tuple[int | None, str]] = field(default_factory=list)  # line (None for the whole file), message


@DATASETS.register_module()
class MultiLabelImages(MultiLabelDataset):
    """Images with any number of labels, including none. For lists in OpenMMLab's JSON use ``MultiLabelDataset``.

    Labels are given by a table of images below ``data_prefix``, see :func:`read_label_table`, or by class folders in
    ``data_prefix``: an image in several folders, as copies or links with the same name, has all their labels, and one
    outside the folders has none.

    Args:
        ann_file: path of the table; ``''`` for class folders.
        extensions: suffixes of images in class folders; case is ignored.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`. Without ``metainfo=dict(classes=...)`` the
            classes are those of the table or folders, in alphabetical or numerical order.

    Raises:
        UserError: a line of the table is invalid, images with the same name differ, or a folder is not a class.
    """

    def __init__(self, ann_file: str = '', extensions: Sequence[str] = EXTENSIONS, **kwargs) -> None:
        self.extensions = tuple(suffix.lower() for suffix in extensions)
        self.copies: list[str] = []  # further copies of images in class folders
        super().__init__(ann_file, **kwargs)

    def read_table(self) -> LabelTable:
        """Read the table ``ann_file``."""
        return read_label_table(Path(self.ann_file), self.metainfo.get('classes'), self.img_prefix)

    def load_data_list(self) -> list[dict]:
        """Return one dict per image with its labels."""
        table = self.read_table() if self.ann_file else self._read_folders()
        for line, message in table.problems:
            raise UserError(f'{self.ann_file or self.img_prefix}{f", line {line}" if line else ""} {message}')
        classes = self._metainfo.setdefault('classes', tuple(table.classes))
        numbers = {composed(name): label for label, name in enumerate(classes)}
        return [
            dict(img_path=os.path.join(self.img_prefix, file), gt_label=sorted({numbers[name] for name in labels}))
            for file, labels in zip(table.files, table.labels)
        ]

    def _read_folders(self) -> LabelTable:
        root, found = Path(self.img_prefix), {}
        folders = sorted(path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith('.'))
        known = {composed(name) for name in self.metainfo.get('classes') or folders}
        for name in [*folders, '']:
            if name and composed(name) not in known:
                return LabelTable(problems=[(None, f'has the folder {name!r}, which is not one of the classes')])
            paths = map(Path, files_below(root / name)) if name else root.iterdir()
            for path in sorted(path for path in paths if path.is_file() and path.suffix.lower() in self.extensions):
                first, labels = found.setdefault(str(path.relative_to(root / name)), (path, []))
                labels += [composed(name)] if name else []
                if first != path:
                    self.copies.append(str(path))
                    if not filecmp.cmp(first, path, shallow=False):  # by content: sizes and times may be equal
                        words = f'has {first} and {path}, which have the same name but differ'
                        return LabelTable(problems=[(None, f'{words}: rename one, or copy one to the other')])
        files = [str(path.relative_to(root)) for path, _ in found.values()]
        return LabelTable(files, [labels for _, labels in found.values()], _in_order([*map(composed, folders)]))


def read_label_table(path: Path, classes: Sequence[str] | None = None, folder: str = '') -> LabelTable:
    """Read a CSV file with a header, separated by commas, semicolons or tabs.

    The first column contains paths of images relative to ``folder``. The second column is named ``labels`` and contains
    class names separated by ``;``, ``|`` or ``,``; or each further column is a class and contains 1 or 0.

    Args:
        path: path of the table.
        classes: allowed class names; by default those in the table.
        folder: folder of the images, which must exist; a remote folder is not checked.

    Returns:
        Content of the table, with its problems.
    """
    table = LabelTable()
    classes = None if classes is None else [*map(composed, classes)]
    try:
        lines = path.read_text(encoding='utf-8-sig').splitlines()
    except UnicodeDecodeError:
        return LabelTable(problems=[(None, 'is not text in UTF-8')])
    rows = csv.reader(lines, delimiter=max(',;\t', key=lines[0].count) if lines else ',')
    try:
        header = [composed(name.strip()) for name in next(rows, [])]
        if len(header) < 2 or len({*header}) < len(header) or header[0].lower().endswith(EXTENSIONS):
            words = 'must name the columns: file,labels, or file and each class once'
            return LabelTable(problems=[(1, words)])
        of_names = len(header) == 2 and header[1].lower() in NAMES
        if not of_names and classes is not None and {*classes} != {*header[1:]}:
            odd = min({*classes} ^ {*header[1:]})
            words = f'has no column {odd!r}' if odd in classes else f'has the column {odd!r}, which is not a class'
            return LabelTable(problems=[(1, f'{words}: use one column for each of the {len(classes)} classes')])
        seen: dict[str, int] = {}
        alike = {folded(name): name for name in classes or ()}
        for row in rows:
            if any(map(str.strip, row)):
                labels = _labels_of(row, header, of_names)
                for wrong in _check_row(row, header, labels, seen, alike, classes, folder):
                    table.problems.append((rows.line_num, wrong))
                seen.setdefault(os.path.normpath(row[0].strip()), rows.line_num)
                table.files.append(row[0].strip())
                table.labels.append(labels)
    except csv.Error as error:
        table.problems.append((rows.line_num, f'cannot be parsed as CSV: {error}'))
    if not table.files and not table.problems:
        table.problems.append((None, 'lists no images'))
    table.classes = _in_order({label for labels in table.labels for label in labels} if of_names else header[1:])
    return table


def _labels_of(row: list[str], header: list[str], of_names: bool) -> list[str]:
    if of_names:
        return [label.strip() for label in re.split('[;|,]', composed(row[1]) if len(row) > 1 else '') if label.strip()]
    return [name for name, value in zip(header[1:], row[1:]) if VALUES.get(value.strip().lower())]


def _check_row(
    row: list[str],
    header: list[str],
    labels: list[str],
    seen: dict[str, int],
    alike: dict[str, str],
    classes: Sequence[str] | None,
    folder: str,
) -> Iterator[str]:
    """Yield the problems of a line; ``alike`` contains the class names so far, by their folded form."""
    file = row[0].strip()
    if len(row) != len(header):
        yield f'has {len(row)} columns, but the first line has {len(header)}'
    elif not file:
        yield 'names no image'
    elif (same := os.path.normpath(file)) in seen:
        yield f'names {file} again, after line {seen[same]}'
    elif '://' not in folder and not os.path.isfile(path := os.path.join(folder, file)):
        near = next((path + suffix for suffix in EXTENSIONS if os.path.isfile(path + suffix)), None)
        similar = f'; add the suffix of {near}' if near else find_similar(path)
        yield f'names {file if similar else path}, which does not exist{similar}'
    elif len(header) != 2 or header[1].lower() not in NAMES:
        for name, value in zip(header[1:], row[1:]):
            if value.strip().lower() not in VALUES:
                yield f'has {value[:40]!r} in the column {name}, but must have 0 or 1'
    else:
        for label in labels:
            known = alike.get(folded(label), '')
            if not known and classes is None:
                alike[folded(label)] = label
            elif known != label and label not in (classes or ()):
                words = f'but earlier lines have {known!r}: use the same spelling'
                if classes is not None:
                    words = 'which is not one of the classes' + (f'; did you mean {known!r}?' if known else '')
                yield f'has the label {label[:80]!r}, {words}'


def _in_order(names: set[str] | list[str]) -> list[str]:
    return sorted(names, key=int if all(name.isdecimal() for name in names) else None)
