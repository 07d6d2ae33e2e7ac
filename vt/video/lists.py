"""Lists of videos: text files with a path and a label per line, and the CSV lists of Kinetics."""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from vt.errors import UserError
from vt.folders import files_below
from vt.untrusted_text import composed, printable


def read_list(path: Path, with_label: bool) -> list[tuple[str, int | None]]:
    """Read paths and labels; a line is a path, a space and a number, or a path only without labels.

    Raises:
        UserError: the list is empty, or a line can't be parsed.
    """

    def parse(line: str) -> tuple[str, int | None]:
        name, label = line.strip().rsplit(' ', 1) if with_label else (line.strip(), None)
        return name, None if label is None else int(label)

    return _parse(path, enumerate(_lines(path), 1), parse, 'a path, a space and a number')


def read_kinetics(path: Path, with_label: bool) -> list[tuple[str, str | None]]:
    """Read a list with the columns ``label,youtube_id,time_start,time_end,split``; other columns are ignored.

    Returns:
        File names without suffix, ``<youtube_id>_<start>_<end>`` with six digits per time, as downloads have, and
        names of classes.

    Raises:
        UserError: the list is empty, or a line can't be parsed.
    """

    def parse(row: dict[str, str]) -> tuple[str, str | None]:
        start, end = (int(float(row[name])) for name in ('time_start', 'time_end'))
        return f'{row["youtube_id"]}_{start:06d}_{end:06d}', row['label'] if with_label else None

    rows = csv.DictReader(map(str.strip, _lines(path)))  # which skips empty lines
    return _parse(path, ((rows.line_num, row) for row in rows), parse, 'label,youtube_id,time_start,time_end')


def _lines(path: Path) -> list[str]:
    return composed(path.read_text(encoding='utf-8-sig')).splitlines()


def _parse(path: Path, lines: Iterable[tuple[int, Any]], parse: Callable, form: str) -> list:
    found = []
    for number, line in lines:
        try:
            found.append(parse(line))
        except (KeyError, TypeError, ValueError) as error:
            shown = printable(str(error), 80)
            raise UserError(f'{path}, line {number} cannot be read as {form}: {shown}') from error
    if not found:
        raise UserError(f'{path} is empty')
    return found


def files_by_stem(folder: Path, extensions: tuple[str, ...]) -> dict[str, str]:
    """Return the paths of all files below a folder with one of the suffixes, by their names without suffix."""
    paths = sorted(path for path in map(Path, files_below(folder)) if path.suffix.lower() in extensions)
    return {path.stem: str(path) for path in paths}
