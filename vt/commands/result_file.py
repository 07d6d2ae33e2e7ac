"""Result file of ``tools/predict.py``, written incrementally."""

import contextlib
import csv
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vt.analysis.tables import printable_cells
from vt.errors import FileError
from vt.untrusted_text import printable


class ResultFile:
    """Context manager that writes each result to ``<out>.part`` at once, and renames this file to ``out`` at the end.

    If the process is interrupted or killed, the file keeps the results so far: a complete CSV, or a JSON list without
    its last bracket. Without results no file is written.

    Args:
        out: path that ends in ``.json`` or ``.csv``.
    """

    def __init__(self, out: Path) -> None:
        self.out = Path(os.path.realpath(out))  # symbolic links are kept
        self.part = self.out.with_name(f'{self.out.name}.part')
        self.file = None

    def __enter__(self) -> 'ResultFile':
        return self

    def add(self, result: dict[str, Any]) -> None:
        """Write a result.

        Args:
            result: a dict with ``file`` and ``predictions``.

        Raises:
            FileError: the file cannot be written.
        """
        with self._naming_part():
            is_first, self.file = self.file is None, self.file or self.part.open('w', encoding='utf-8', newline='')
            if self.out.suffix == '.json':
                self.file.write(('[\n' if is_first else ',\n') + json.dumps(result, indent=2))
            else:
                self._add_rows([dict(file=result['file'], **entry) for entry in result['predictions']], is_first)
            self.file.flush()

    def _add_rows(self, rows: list[dict[str, Any]], is_first: bool) -> None:
        writer = csv.DictWriter(self.file, list(rows[0]))
        if is_first:
            writer.writeheader()
        writer.writerows(map(printable_cells, rows))

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if self.file is None:
            return
        if kind is not None:
            print(printable(f'the results so far are in {self.part}'), file=sys.stderr)
            with contextlib.suppress(OSError):  # the disk may be full
                self.file.close()
            return
        with self._naming_part(), self.file:
            self.file.write('\n]\n' if self.out.suffix == '.json' else '')
            self.file.flush()
            os.fsync(self.file.fileno())
            self.part.replace(self.out)

    @contextlib.contextmanager
    def _naming_part(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            advice = 'free space there, correct its permissions, or give another --out'
            raise FileError(f'{self.part} could not be written ({error.strerror}): {advice}') from error
