"""Read the records of finished runs, and describe them as rows of a table."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from vt.engine.errors import describe
from vt.errors import UserError
from vt.files import interpreting, read_json

KEYS = ('config', 'length', 'seed', 'options', 'date', 'device', 'versions', 'seconds', 'iterations', 'batch_size')
METRICS = {'accuracy/top1': 'top-1', 'mIoU': 'mIoU'}


def label_run(work_dir: Path) -> dict[str, Any]:
    """Read the record of a finished run, with the label of its work directory, ``LABEL_seed-SEED``.

    Folds of a cross-validation share a label, as seeds do.

    Raises:
        MissingFileError: the run is not finished.
        UserError: the record is damaged, or the run was trained without validation.
    """
    record = _read(work_dir, KEYS)
    if not record.get('metrics'):
        run = f'{record["config"]}, seed {record["seed"]}'
        raise UserError(f'{run}: the run has no score; train it without --no-validate')
    label = work_dir.name.rsplit('_seed-', 1)[0]
    if 'fold' in record['options']:
        label = re.sub(r'(^|_)fold=\d+', '', label).strip('_') or Path(record['config']).stem
    return dict(label=label) | record


def describe_run(work_dir: Path) -> dict[str, str]:
    """Describe a finished run as a row of a table, with the score of its last validation.

    If ``tools/test.py --benchmark`` was run on a checkpoint of it, its test score and speed are further columns.

    Args:
        work_dir: work directory of ``tools/train.py``.

    Raises:
        MissingFileError: the run has no record, since it was not trained to the end.
        UserError: a record is damaged.
    """
    training, benchmark = _read(work_dir, ['config']), Path(f'{work_dir}.benchmark.json')
    measured, again = training, 'measure it: tools/test.py --benchmark'
    if benchmark.is_file():
        with interpreting(benchmark, again):
            measured = training | read_json(benchmark, again)
    tested = measured.get('checkpoint')
    numbers = {
        'parameters (M)': ('.2f', 1e6, measured.get('parameters')),
        'FLOPs (G)': ('.4f', 1e9, measured.get('flops')),
        'images/s': ('.0f', 1, measured.get('throughput')),
        'training time (s)': ('.0f', 1, training.get('seconds')),
    }
    return {
        'model': Path(training['config']).stem,
        'score of the last validation (%)': _describe_score(training),
        'score in the test (%)': _describe_score(measured) if tested else '',
        'tested': Path(tested).name if tested else '',
        **{name: '' if number is None else f'{number / unit:{form}}' for name, (form, unit, number) in numbers.items()},
    }


def _read(work_dir: Path, keys: Iterable[str]) -> dict[str, Any]:
    again = f'train it first: tools/train.py CONFIG --work-dir {work_dir}'
    return read_json(work_dir / 'training.json', again, keys=keys)


def _describe_score(record: dict[str, Any]) -> str:
    name, score = pick_score(record['metrics']) if record.get('metrics') else ('', 0.0)
    return f'{score:.2f} {name}' if name else ''


def pick_score(metrics: dict[str, float | None]) -> tuple[str, float]:
    """Return the name and value of a run's main metric: ``'top-1'`` or ``'mIoU'``, in percent, or else the first one.

    The value is NaN if the record has none.
    """
    found = next((key for key in METRICS if key in metrics), next(iter(metrics)))
    value = metrics[found]
    return METRICS.get(found, found), float('nan') if value is None else value


def read_each(read: Callable[[Path], Any], paths: Iterable[Path]) -> tuple[list, list[str]]:
    """Call ``read`` for each path; return the results, and an error message for each path that can't be read."""
    found, errors = [], []
    for path in paths:
        try:
            found.append(read(path))
        except (UserError, OSError) as error:
            line = describe(error)
            if line is None:
                raise
            errors.append(line)
    return found, errors
