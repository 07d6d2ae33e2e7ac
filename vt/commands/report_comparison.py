"""Comparison with an earlier report of the same images: ``tools/test.py --report FOLDER --compare FOLDER``."""

from pathlib import Path
from typing import Any

import numpy as np

from vt.analysis.evaluation import compare_paired
from vt.errors import UserError
from vt.files import read_json
from vt.untrusted_text import composed

HINT = 'give the folder of an earlier --report of the same test set'
KEYS = ('checkpoint', 'images', 'classes', 'per_class', 'image_scores', 'labels_digest')


def read_earlier(folder: str, images: int) -> dict[str, Any]:
    """Read an earlier report of this number of images; raise a UserError if there is none."""
    path = Path(folder, 'report.json')
    found = read_json(path, HINT, keys=KEYS)
    if found['images'] != images:
        raise UserError(f'{path} has {found["images"]} images, this test has {images}; {HINT}')
    return found


def compare_reports(record: dict[str, Any], other: dict[str, Any], key: str) -> dict:
    """Compare a report with an earlier one.

    Args:
        record: this report, with the ``KEYS``.
        other: the earlier report.
        key: name of the score of classes.

    Returns:
        ``checkpoint`` of the earlier report; ``better``, ``worse`` and ``p`` of :func:`compare_paired`; ``per_class``.

    Raises:
        UserError: the earlier report has other images or classes, or is damaged.
    """
    classes = [[composed(str(name)) for name in each['classes']] for each in (record, other)]
    if record['labels_digest'] != other['labels_digest'] or classes[0] != classes[1]:
        raise UserError(f'--compare: the report of {other["checkpoint"]} has other images or classes; {HINT}')
    try:
        ours, theirs = (np.array(each['image_scores'], float) for each in (record, other))
        before = np.array([row[key] for row in other['per_class']], float)
        rows = [
            dict(name=row['name'], other=earlier, this=row[key], difference=row[key] - earlier)
            for row, earlier in zip(record['per_class'], before, strict=True)
        ]
        found = compare_paired(ours, theirs)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UserError(f'--compare: the report of {other["checkpoint"]} is damaged; {HINT}') from error
    return dict(checkpoint=str(other['checkpoint']), **found, per_class=rows)
