"""Result file of ``tools/predict.py``, written incrementally."""

import contextlib
import csv
import fcntl
import json
import os
import sys
from pathlib import Path
from typing import Any

from vt.analysis.tables import printable_cells
from vt.checkpoints.files import open_plain
from vt.errors import UserError
from vt.untrusted_text import printable


class ResultFile:
    """Context manager that writes each result to ``<out>.part`` at once, and renames this file to ``out`` at the end.

    If the process is interrupted or killed, the file keeps the results so far: a complete CSV, or a JSON list without
    its last bracket. Without results ``out`` is not written.

    Args:
        out: path that ends in ``.json`` or ``.csv``.

    Raises:
        UserError: on entering the context, if another process writes the same results.
    """

    def __init__(self, out: Path) -> None:
        self.out = Path(os.path.realpath(out))  # symbolic links are kept
        self.part = self.out.with_name(f'{self.out.name}.part')
        self.is_first = True

    def __enter__(self) -> 'ResultFile':
        self.file = open_plain(self.part, 'a', newline='')  # results of a killed process stay until there are new ones
        if not self._is_mine():
            raise UserError(f'another process writes {self.part}: wait until it ends, or give another --out')
        return self

    def _is_mine(self) -> bool:
        """Lock the file; if another process has just given it its name, ``part`` is another file, or none."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.path.samefile(self.part, self.file.fileno())
        except OSError as error:  # others: a file system without locks
            return not isinstance(error, (BlockingIOError, FileNotFoundError))

    def add(self, result: dict[str, Any]) -> None:
        """Write a result.

        Args:
            result: a dict with ``file`` and ``predictions``.
        """
        if self.is_first:
            self.file.truncate(0)
        if self.out.suffix == '.json':
            self.file.write(('[\n' if self.is_first else ',\n') + json.dumps(result, indent=2))
        else:
            self._add_rows([dict(file=result['file'], **entry) for entry in result['predictions']])
        self.is_first = False
        self.file.flush()

    def _add_rows(self, rows: list[dict[str, Any]]) -> None:
        writer = csv.DictWriter(self.file, list(rows[0]))
        if self.is_first:
            writer.writeheader()
        writer.writerows(map(printable_cells, rows))

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if kind is None and not self.is_first:
            with self.file:
                self.file.write('\n]\n' if self.out.suffix == '.json' else '')
                self.file.flush()
                os.fsync(self.file.fileno())
                self.part.replace(self.out)
            return
        if not self.is_first:
            print(printable(f'the results so far are in {self.part}'), file=sys.stderr)
        elif not self.part.stat().st_size:
            self.part.unlink()
        with contextlib.suppress(OSError):  # the disk may be full
            self.file.close()
