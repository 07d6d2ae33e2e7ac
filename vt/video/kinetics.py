"""Kinetics' lists: comma-separated values, a clip of YouTube a line, and the files that are named by them."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

NEEDED = ('youtube_id', 'time_start', 'time_end')


@dataclass
class KineticsList:
    """What a list says.

    Attributes:
        stems: of the files, ``<youtube_id>_<start>_<end>`` with six digits a time, as the usual downloads name them.
        labels: class names, one a file; empty where the list has none, as that of the held-out test.
        lines: of the file, one a stem.
        problems: lines that don't parse, and what is wrong with them.
    """

    stems: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    problems: list[tuple[int | None, str]] = field(default_factory=list)


def read_kinetics(path: Path, classes: tuple[str, ...] | None = None, with_label: bool = True) -> KineticsList:
    """Read a list whose columns are ``label,youtube_id,time_start,time_end,split``; others are left alone.

    Args:
        path: of the list.
        classes: that labels must be of; None takes those of the list.
        with_label: whether there is a label to read.
    """
    found = KineticsList()
    try:
        rows = csv.DictReader(path.read_text(encoding='utf-8-sig').splitlines())
    except UnicodeDecodeError:
        found.problems.append((None, 'is not a text in UTF-8'))
        return found
    needed = (*NEEDED, 'label') if with_label else NEEDED
    absent = [name for name in needed if name not in (rows.fieldnames or ())]
    if absent:
        message = f'has no column {absent[0]}: the first line must name {",".join(needed)}'
        found.problems.append((1 if rows.fieldnames else None, message if rows.fieldnames else 'is empty'))
        return found
    for row in rows:
        wrong = _check_row(row, needed, classes)
        if wrong:
            found.problems.append((rows.line_num, wrong))
            continue
        start, end = (int(float(row[name])) for name in ('time_start', 'time_end'))
        found.stems.append(f'{row["youtube_id"]}_{start:06d}_{end:06d}')
        found.lines.append(rows.line_num)
        found.labels += [row['label']] if with_label else []
    if not found.stems and not found.problems:
        found.problems.append((None, 'lists no videos'))
    return found


def _check_row(row: dict[str, str | None], needed: tuple[str, ...], classes: tuple[str, ...] | None) -> str | None:
    """What is wrong with a line."""
    absent = [name for name in needed if not row[name]]
    if absent:
        return f'has no {absent[0]}'
    for name in ('time_start', 'time_end'):
        seconds = row[name] or ''
        if not seconds.replace('.', '', 1).isdecimal():
            return f'has {name}={seconds[:40]!r}: seconds are needed'
    label = row.get('label')
    if classes is not None and label and label not in classes:
        return f'has the label {label[:80]!r}, which is none of the {len(classes)} classes'
    return None


def files_by_stem(folder: Path, extensions: tuple[str, ...]) -> dict[str, str]:
    """Paths below a folder, in class folders or not, by their names without a suffix."""
    return {path.stem: str(path) for path in _files(folder) if path.suffix.lower() in extensions}


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob('*')) if path.is_file())
