"""What ``tools/benchmark.py --out`` measured: medians."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from vt.files import read_json


def read_medians(paths: Iterable[Path]) -> pd.DataFrame:
    """A row a measurement of a whole model: ``model``, ``kind``, ``batch_size``, and ``median`` seconds of a step."""
    again = 'write it first: tools/benchmark.py CONFIG ... --out'
    results = [row for path in paths for row in read_json(path, again, keys=['results'])['results']]
    return pd.DataFrame(
        [row | dict(median=np.median(row['seconds'])) for row in results if row.get('part', 'whole') == 'whole']
    )
