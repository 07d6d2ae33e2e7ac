"""The measurement of ``projects/speed/gpu_report.py``: part after part, each in a process that may fail."""

import argparse
import json
import os
import pkgutil
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from vt._libraries import importing
from vt.errors import UserError
from vt.files import write_atomically

# Functions in the order of their worth. Each begins if so many seconds are left; after twice as many no row begins.
PARTS = dict(environment=20, ceilings=10, kernels=30, necks=45, resnets=60, paths=35, trainings=75, compiled=45)
GRACE = 15  # seconds for a row that has begun; then its process is killed


def gpu_report(args: argparse.Namespace) -> None:
    """Measure part after part while there is time; what is known after each is in the folder.

    Raises:
        UserError: there is no GPU for a run that is not dry; or there are errors, beside which all else was measured.
    """
    if args.dry:
        os.environ['CUDA_VISIBLE_DEVICES'] = ''  # of the processes that are started
    else:
        _require_gpu()
    report = GpuReport(args.folder, args.seconds, args.dry)
    for name, needs in PARTS.items():
        report.measure(name, f'projects.speed.gpu_parts:{name}', needs)
    report.end_worker()
    if report.failed:
        raise UserError(f'there are errors in {", ".join(report.failed)}: see {args.folder / "log.txt"}')


def _require_gpu() -> None:
    import torch

    if not torch.cuda.is_available():
        raise UserError('there is no GPU that PyTorch can use; --dry measures in the smallest sizes on the CPU')


class GpuReport:
    """A report that grows: ``measured.json`` and ``log.txt`` are written anew after every part.

    Args:
        folder: for both, and for the records of trainings.
        seconds: for all of it.
        dry: in the smallest sizes, on the CPU.
    """

    def __init__(self, folder: Path, seconds: float, dry: bool) -> None:
        self.folder, self.dry = folder, dry
        self.begin = time.monotonic()
        self.end = self.begin + seconds
        self.measured: dict[str, Any] = dict(dry=dry, limit=seconds, seconds=0.0, parts={})
        self.failed: list[str] = []
        self._log: list[str] = []
        self._worker: Worker | None = None

    def measure(self, name: str, function: str, needs: float) -> None:
        """Add a part, ``'module:function'``, if so many seconds are left."""
        begin = time.monotonic()
        part: dict[str, Any] = dict(rows=[])
        self.measured['parts'][name] = part
        if self.end - begin < needs:
            part['skipped'] = f'needs {needs:.0f} s, and {self.end - begin:.0f} s were left'
        else:
            self._add_rows(part, function, until=min(begin + 2 * needs, self.end - GRACE))
        part['seconds'] = round(time.monotonic() - begin, 1)
        errors = sum('error' in row for row in (part, *part['rows']))
        self.failed += [name] * (errors > 0)
        end = part.get('skipped') or f'{part["seconds"]} s, {len(part["rows"])} rows, {errors} errors'
        self._save(f'[{time.monotonic() - self.begin:3.0f} s] {name}: {end}')

    def _add_rows(self, part: dict[str, Any], function: str, until: float) -> None:
        self._worker = self._worker or Worker(self.folder, self.dry)
        try:
            for row in self._worker.rows(function, until):
                if log := row.pop('log', ''):
                    self._log.append(f'--- {row}\n{log}')
                part['rows'].append(row)
        except (EOFError, OSError) as error:
            part['error'] = f'the process that measured it is gone, and its last row: {error or type(error).__name__}'
            self.end_worker()

    def end_worker(self) -> None:
        """End the process that measures; the next part gets a new one."""
        if self._worker:
            self._worker.stop()
            self._worker = None

    def _save(self, line: str) -> None:
        print(line, flush=True)
        self._log.append(line)
        self.measured['seconds'] = round(time.monotonic() - self.begin, 1)
        write_atomically(self.folder / 'measured.json', json.dumps(self.measured, indent=1))
        write_atomically(self.folder / 'log.txt', '\n'.join(self._log) + '\n')


class Worker:
    """A process that measures parts one after the other; a part that breaks it, or hangs, breaks no other part."""

    def __init__(self, folder: Path, dry: bool) -> None:
        context = get_context('spawn')
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, folder, dry), daemon=True)
        self._process.start()
        theirs.close()

    def rows(self, function: str, until: float) -> Iterator[dict[str, Any]]:
        """The rows of a part as they come; none begins after ``until``, of ``time.monotonic``.

        Raises:
            EOFError, OSError: the process ended, or a row took too long.
        """
        self._connection.send((function, until))
        while self._connection.poll(max(0, until + GRACE - time.monotonic())):
            row = self._connection.recv()
            if row is None:
                return
            yield row
        raise TimeoutError('it took too long')

    def stop(self) -> None:
        """End it, whatever it does."""
        with suppress(OSError):
            self._connection.send(None)
        self._process.join(timeout=2)
        self._process.kill()


def _serve(connection: Connection, folder: Path, dry: bool) -> None:
    with importing():
        import torch

        from .gpu_parts import Rows
    torch.backends.cudnn.benchmark = True  # as in the configs
    device = torch.device('cpu' if dry else 'cuda')
    while task := connection.recv():
        function, until = task
        pkgutil.resolve_name(function)(Rows(connection.send, until, device, dry, folder))
        connection.send(None)
