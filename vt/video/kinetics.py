"""Kinetics' lists: comma-separated values, a clip of YouTube a line, and the files that are named by them."""

import csv
from dataclasses import dataclass, field
from pathlib import Path

NEEDED = ('youtube_id', 'time_start', 'time_end')


@dataclass
class KineticsList:
    """What a list says.

    Attributes:
        stems: of the files, ``<youtube_id>_<start>_<end>`` with six digits a time, as the usual downloads name them.
        labels: class names, one a file; empty where the list has none, as that of the held-out test.
        problems: lines that don't parse, None for the whole file, and what is wrong with them.
    """

    stems: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    problems: list[tuple[int | None, str]] = field(default_factory=list)


def read_kinetics(path: Path, classes: tuple[str, ...] | None = None, with_label: bool = True) -> KineticsList:
    """Read a list whose columns are ``label,youtube_id,time_start,time_end,split``; others are left alone.

    Args:
        path: of the list.
        classes: that labels must be of; None takes those of the list.
        with_label: whether there is a label to read.
    """
    needed, found = (*NEEDED, 'label') if with_label else NEEDED, KineticsList()
    try:
        rows = csv.DictReader(path.read_text(encoding='utf-8-sig').splitlines())
    except UnicodeDecodeError:
        return KineticsList(problems=[(None, 'is not a text in UTF-8')])
    if not rows.fieldnames:
        return KineticsList(problems=[(None, 'is empty')])
    for name in needed:
        if name not in rows.fieldnames:
            message = f'has no column {name}: the first line must name {",".join(needed)}'
            return KineticsList(problems=[(1, message)])
    for row in rows:
        wrong = _check_row(row, needed, classes)
        if wrong:
            found.problems.append((rows.line_num, wrong))
            continue
        start, end = (int(float(row[name])) for name in ('time_start', 'time_end'))
        found.stems.append(f'{row["youtube_id"]}_{start:06d}_{end:06d}')
        found.labels += [row['label']] if with_label else []
    if not found.stems and not found.problems:
        found.problems.append((None, 'lists no videos'))
    return found


def _check_row(row: dict[str, str | None], needed: tuple[str, ...], classes: tuple[str, ...] | None) -> str | None:
    """What is wrong with a line."""
    for name in needed:
        if not row[name]:
            return f'has no {name}'
    for name in ('time_start', 'time_end'):
        if not row[name].replace('.', '', 1).isdecimal():
            return f'has {name}={row[name][:40]!r}: seconds are needed'
    label = row.get('label')
    if classes is not None and label and label not in classes:
        return f'has the label {label[:80]!r}, which is none of the {len(classes)} classes'
    return None


def files_by_stem(folder: Path, extensions: tuple[str, ...]) -> dict[str, str]:
    """Paths below a folder, in class folders or not, by their names without a suffix."""
    paths = sorted(path for path in folder.rglob('*') if path.suffix.lower() in extensions and path.is_file())
    return {path.stem: str(path) for path in paths}
