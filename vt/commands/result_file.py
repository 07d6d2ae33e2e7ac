"""Result file of ``tools/predict.py``, written incrementally."""

import csv
import json
import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from vt.analysis.tables import printable_cells
from vt.files import open_plain
from vt.untrusted_text import printable


class ResultFile:
    """Context manager that writes each result to ``<out>.part`` at once, and renames this file to ``out`` at the end.

    If the process is interrupted or killed, the file keeps the results so far: a complete CSV, or a JSON list without
    its last bracket. Without results ``out`` is not written.

    Args:
        out: path that ends in ``.json`` or ``.csv``.
    """

    def __init__(self, out: Path) -> None:
        self.out = Path(os.path.realpath(out))  # symbolic links are kept
        self.part = self.out.with_name(f'{self.out.name}.part')
        self.file: TextIOWrapper | None = None  # results of a killed process stay until there are new ones

    def __enter__(self) -> 'ResultFile':
        self.out.parent.mkdir(parents=True, exist_ok=True)
        return self

    def add(self, result: dict[str, Any]) -> None:
        """Write a result.

        Args:
            result: a dict with ``file`` and ``predictions``.
        """
        is_first = self.file is None
        if self.file is None:
            self.file = open_plain(self.part, 'w', newline='')
        if self.out.suffix == '.json':
            self.file.write(('[\n' if is_first else ',\n') + json.dumps(result, indent=2))
        else:
            rows = [dict(file=result['file'], **entry) for entry in result['predictions']]
            writer = csv.DictWriter(self.file, list(rows[0]))
            if is_first:
                writer.writeheader()
            writer.writerows(map(printable_cells, rows))
        self.file.flush()

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if self.file is None:
            return
        with self.file:
            if kind is not None:
                print(printable(f'the results so far are in {self.part}'), file=sys.stderr)
                return
            self.file.write('\n]\n' if self.out.suffix == '.json' else '')
            self.file.flush()
            os.fsync(self.file.fileno())
            self.part.replace(self.out)
