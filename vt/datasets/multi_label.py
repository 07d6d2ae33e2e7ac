"""Images with any number of labels each, by a table or by folders of classes."""

import csv
import filecmp
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mmpretrain.datasets import MultiLabelDataset

from vt.errors import UserError
from vt.registry import DATASETS

from .images_and_masks import EXTENSIONS

NAMES = ('labels', 'label', 'classes', 'tags')  # of a column of names
VALUES = {'0': False, '0.0': False, 'false': False, '': False, '1': True, '1.0': True, 'true': True}


@dataclass
class LabelTable:
    """What a table says: ``labels`` of each of ``files``, and ``problems``, lines (None for all) with texts."""

    files: list[str] = field(default_factory=list)
    labels: list[list[str]] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    problems: list[tuple[int | None, str]] = field(default_factory=list)


@DATASETS.register_module()
class MultiLabelImages(MultiLabelDataset):
    """Images with any number of labels, also none. Lists in OpenMMLab's JSON are MMPretrain's ``MultiLabelDataset``.

    With ``ann_file`` a table, see :func:`read_label_table`, of images below ``data_prefix``. Without it
    ``data_prefix`` holds a folder a class: an image that is in several of them, as copies or links of one name, has all
    their labels, and one beside the folders has none.

    Args:
        ann_file: the table, ``''`` for folders.
        extensions: of images in folders; upper and lower case are the same.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`. Without ``metainfo=dict(classes=...)`` the
            classes are those of the table or the folders, in alphabetical order; numbers by their value.

    Raises:
        UserError: a line of the table is wrong; two images of one name differ; a folder is none of the classes.
    """

    def __init__(self, ann_file: str = '', extensions: Sequence[str] = EXTENSIONS, **kwargs) -> None:
        self.extensions = tuple(suffix.lower() for suffix in extensions)
        self.copies: list[str] = []  # of images in folders, beside those that are loaded
        super().__init__(ann_file, **kwargs)

    def read_table(self) -> LabelTable:
        """The table of ``ann_file``."""
        return read_label_table(Path(self.ann_file), self.metainfo.get('classes'), self.img_prefix)

    def load_data_list(self) -> list[dict]:
        """One dict an image, with its labels."""
        table = self.read_table() if self.ann_file else self._read_folders()
        for line, message in table.problems:
            raise UserError(f'{self.ann_file or self.img_prefix}{f", line {line}" if line else ""} {message}')
        classes = self._metainfo.setdefault('classes', tuple(table.classes))
        numbers = {name: label for label, name in enumerate(classes)}
        return [
            dict(img_path=os.path.join(self.img_prefix, file), gt_label=sorted({numbers[name] for name in labels}))
            for file, labels in zip(table.files, table.labels)
        ]

    def _read_folders(self) -> LabelTable:
        root, found = Path(self.img_prefix), {}
        folders = sorted(path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith('.'))
        known = self.metainfo.get('classes') or folders
        for name in [*folders, '']:
            if name and name not in known:
                return LabelTable(problems=[(None, f'has the folder {name!r}, which is none of the classes')])
            paths = (root / name).rglob('*') if name else root.iterdir()
            for path in sorted(path for path in paths if path.is_file() and path.suffix.lower() in self.extensions):
                first, labels = found.setdefault(str(path.relative_to(root / name)), (path, []))
                labels += [name] if name else []
                if first != path:
                    self.copies.append(str(path))
                    if not filecmp.cmp(first, path):
                        words = f'has {first} and {path}, which have one name but differ: an image of several labels'
                        return LabelTable(problems=[(None, f'{words} is the same in each folder; rename one of them')])
        files = [str(path.relative_to(root)) for path, _ in found.values()]
        return LabelTable(files, [labels for _, labels in found.values()], _in_order(folders))


def read_label_table(path: Path, classes: Sequence[str] | None = None, folder: str = '') -> LabelTable:
    """Read a CSV file whose first line names the columns, separated by commas, semicolons or tabs.

    The first column holds the images' paths below ``folder``. A second one of the name ``labels`` holds names of
    classes, separated by ``;``, ``|`` or ``,``; else each further column is a class, with 1 or 0.

    Args:
        path: of the table.
        classes: that labels must be of; None takes those of the table.
        folder: of the images, which must be there; not looked at on another machine.
    """
    table = LabelTable()
    try:
        lines = path.read_text(encoding='utf-8-sig').splitlines()
    except UnicodeDecodeError:
        return LabelTable(problems=[(None, 'is not a text in UTF-8')])
    rows = csv.reader(lines, delimiter=max(',;\t', key=lines[0].count) if lines else ',')
    try:
        header = [name.strip() for name in next(rows, [])]
        if len(header) < 2 or len({*header}) < len(header) or header[0].lower().endswith(EXTENSIONS):
            words = 'must name the columns: file,labels, or file and each class once'
            return LabelTable(problems=[(1, words)])
        of_names = len(header) == 2 and header[1].lower() in NAMES
        if not of_names and classes is not None and {*classes} != {*header[1:]}:
            odd = min({*classes} ^ {*header[1:]})
            words = f'has no column {odd!r}' if odd in classes else f'has the column {odd!r}, which is no class'
            return LabelTable(problems=[(1, f'{words}: give the {len(classes)} classes of the config one each')])
        seen: dict[str, int] = {}
        alike = {name.casefold(): name for name in classes or ()}
        for row in rows:
            if any(map(str.strip, row)):
                labels = _labels_of(row, header, of_names)
                for wrong in _check_row(row, header, labels, seen, alike, classes, folder):
                    table.problems.append((rows.line_num, wrong))
                seen.setdefault(row[0], rows.line_num)
                table.files.append(row[0].strip())
                table.labels.append(labels)
    except csv.Error as error:
        table.problems.append((rows.line_num, f'is no line of a table: {error}'))
    if not table.files and not table.problems:
        table.problems.append((None, 'lists no images'))
    table.classes = _in_order({label for labels in table.labels for label in labels} if of_names else header[1:])
    return table


def _labels_of(row: list[str], header: list[str], of_names: bool) -> list[str]:
    if of_names:
        return [label.strip() for label in re.split('[;|,]', row[1] if len(row) > 1 else '') if label.strip()]
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
    """What is wrong with a line; ``alike`` has the names so far by what they are in lower case."""
    file = row[0].strip()
    if len(row) != len(header):
        yield f'has {len(row)} columns, the first line {len(header)}'
    elif not file:
        yield 'names no image'
    elif row[0] in seen:
        yield f'names {file} again, after line {seen[row[0]]}'
    elif '://' not in folder and not os.path.isfile(path := os.path.join(folder, file)):
        near = next((path + suffix for suffix in EXTENSIONS if os.path.isfile(path + suffix)), None)
        yield f'names {path}, which is no file' + (f'; there is {near}: write the suffix, too' if near else '')
    elif len(header) != 2 or header[1].lower() not in NAMES:
        for name, value in zip(header[1:], row[1:]):
            if value.strip().lower() not in VALUES:
                yield f'has {value[:40]!r} in the column {name}: 0 or 1 is needed'
    else:
        for label in labels:
            known = alike.get(label.casefold(), '')
            if not known and classes is None:
                alike[label.casefold()] = label
            elif known != label and label not in (classes or ()):
                words = f'earlier lines have {known!r}: write one class in one way'
                if classes is not None:
                    words = 'which is none of the classes' + (f'; is {known!r} meant?' if known else '')
                yield f'has the label {label[:80]!r}, {words}'


def _in_order(names: set[str] | list[str]) -> list[str]:
    return sorted(names, key=int if all(name.isdecimal() for name in names) else None)
