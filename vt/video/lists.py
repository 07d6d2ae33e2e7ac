"""Lists of samples: text files with a path and a label per line, and the CSV lists of Kinetics."""

import csv
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vt.folders import files_below
from vt.untrusted_text import composed, folded, printable

NEEDED = ('youtube_id', 'time_start', 'time_end')  # columns of Kinetics' lists
SECONDS = re.compile(r'[0-9]{1,6}(\.[0-9]*)?|\.[0-9]+')  # files are named with six digits


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


@dataclass
class KineticsList:
    """Content of a list of Kinetics.

    Attributes:
        stems: file names without suffix, ``<youtube_id>_<start>_<end>`` with six digits per time, as downloads have.
        labels: class name of each file; empty if the list has no labels, like that of the held-out test set.
        problems: problems as from :func:`check_lines`.
    """

    stems: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    problems: list[tuple[int | None, str]] = field(default_factory=list)


def read_kinetics(path: Path, classes: tuple[str, ...] | None = None, with_label: bool = True) -> KineticsList:
    """Read a list with the columns ``label,youtube_id,time_start,time_end,split``; other columns are ignored.

    Args:
        path: path of the list.
        classes: allowed labels; None allows all.
        with_label: whether to read labels.
    """
    needed, found = (*NEEDED, 'label') if with_label else NEEDED, KineticsList()
    try:
        lines = composed(path.read_text(encoding='utf-8-sig')).splitlines()
    except UnicodeDecodeError:
        return KineticsList(problems=[(None, 'is not a text file in UTF-8')])
    if not any(map(str.strip, lines)):
        return KineticsList(problems=[(None, 'is empty')])
    rows = csv.DictReader(lines)
    try:
        _read_rows(rows, needed, classes, found)
    except csv.Error as error:  # a field that is too long
        found.problems.append((rows.reader.line_num, f'is not a line of a CSV file: {error}'))
    if not found.stems and not found.problems:
        found.problems.append((None, 'lists no videos'))
    return found


def _read_rows(rows: csv.DictReader, needed: Sequence[str], classes: Sequence[str] | None, found: KineticsList) -> None:
    for name in needed:
        if name not in (rows.fieldnames or ()):
            found.problems.append((1, f'has no column {name}: the first line must name {",".join(needed)}'))
            return
    alike: dict[str, str] = {}  # labels by their form without case and surrounding spaces
    seen: dict[str, str] = {}  # labels by the names of files
    for row in rows:
        if not any(value.strip() for value in row.values() if isinstance(value, str)):
            continue
        wrong = _check_row(row, needed, classes, alike)
        if wrong:
            found.problems.append((rows.line_num, wrong))
            continue
        start, end = (int(float(row[name])) for name in ('time_start', 'time_end'))
        found.stems.append(f'{row["youtube_id"]}_{start:06d}_{end:06d}')
        if 'label' in needed and (known := seen.setdefault(found.stems[-1], row['label'])) != row['label']:
            wrong = (
                f'gives {found.stems[-1]} the label {row["label"][:80]!r}, but an earlier line gives it {known[:80]!r}'
            )
            found.problems.append((rows.line_num, wrong))
        found.labels += [row['label']] if 'label' in needed else []


def _check_row(
    row: dict[str, str | None], needed: Sequence[str], classes: Sequence[str] | None, alike: dict[str, str]
) -> str | None:
    """Return what is wrong with a row; None if nothing is."""
    for name in needed:
        if not row[name]:
            return f'has no {name}'
    for name in ('time_start', 'time_end'):
        seconds = row[name] or ''
        if not SECONDS.fullmatch(seconds):
            return f'has {name}={seconds[:40]!r}: write seconds with at most six digits'
    label = row['label'] if 'label' in needed else None
    if label is None:
        return None
    if classes is not None and label not in classes:
        close = next((f'; did you mean {name!r}?' for name in classes if _plain(name) == _plain(label)), '')
        return f'has the label {label[:80]!r}, which is not one of the {len(classes)} classes{close}'
    if classes is None and (first := alike.setdefault(_plain(label), label)) != label:
        return f'has the label {label[:80]!r}, but earlier lines have {first[:80]!r}: write each class in one way'
    return None


def _plain(label: str) -> str:
    """A label without case and surrounding spaces."""
    return folded(label.strip())


def files_by_stem(folder: Path, extensions: tuple[str, ...]) -> dict[str, str]:
    """Return the paths of all files below a folder with one of the suffixes, by their names without suffix."""
    paths = sorted(path for path in map(Path, files_below(folder)) if path.suffix.lower() in extensions)
    return {path.stem: str(path) for path in paths}
