"""What ``tools/attention.py tokens --out`` measured of a model's seeds, as a table after a mark of a page.

A page names its table, ``<!-- attention MODEL -->``; the seeds' files are ``MODEL_seed-SEED.json``.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from vt.analysis.tables import insert, to_markdown
from vt.checkpoints.files import read_json

MARK = re.compile(r'<!-- (attention ([\w-]+)) -->')


def describe_seeds(measured: Sequence[dict]) -> list[dict[str, str]]:
    """A row for each tokenizer, with what every seed's model measured: as ``tools/attention.py`` writes it."""
    rows = []
    for name, first in measured[0]['tokenizers'].items():
        seeds = [seed['tokenizers'][name] for seed in measured]
        rows.append(
            {
                'tokenizer': name,
                'map': first['map'],
                'uniform entropy (nats)': f'{first["uniform_entropy"]:.3f}',
                'entropy': ', '.join(f'{seed["entropy"]:.3f}' for seed in seeds),
                'times smaller': ', '.join(f'{seed["times_smaller"]:.2f}' for seed in seeds),
                'more on foreground (%)': ', '.join(f'{100 * seed["foreground_gain"]:+.1f}' for seed in seeds),
                'A to A (diagonals)': ', '.join(f'{seed["spread"]:.2f}' for seed in seeds),
                'uniform': f'{first["uniform_spread"]:.2f}',
                'centre of A to of Â': ', '.join(f'{seed["shift"]:.3f}' for seed in seeds),
            }
        )
    return rows


def write_page(page: Path, folder: Path) -> None:
    """Write a page's tables of attention, from the measurements in ``folder``."""
    for mark, model in MARK.findall(page.read_text()):
        measured = [read_json(path, 'measure it') for path in sorted(folder.glob(f'{model}_seed-*.json'))]
        insert(page, mark, to_markdown(describe_seeds(measured)))
