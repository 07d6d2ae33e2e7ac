"""The paper's numbers, as data: ``paper_tables.json`` holds the tables of Wu et al., ICCV 2021 (arXiv 2006.03677)."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DETECTRON2_CLASSES = 54  # COCO-Stuff as detectron2 merges it; the paper's FLOPs of both segmentation tables fit it
# Table, height and width of the images, end of the configs' names.
SEGMENTATION = {
    9: ('table9_coco_stuff_800x1216', (800, 1216), '4xb8-90k_coco-stuff164k-800x1216'),
    10: ('table10_lip_473x473', (473, 473), '4xb24-48k_lip-473x473'),
}


@cache
def load_tables() -> dict:
    """Every table of the paper by name; ``source`` says where they are from."""
    return json.loads(Path(__file__).with_name('paper_tables.json').read_text())


@dataclass(frozen=True)
class AblationTable:
    """One of the paper's ablations, and where ours are.

    Attributes:
        key: its name in ``paper_tables.json``, and of its folder in ``configs/ablations``.
        title: what is varied.
        column: the paper's column that tells the rows apart.
        variants: for each value of that column the part of a config's name that says it; None for the model itself.
    """

    key: str
    title: str
    column: str
    variants: dict[str, str | None]

    def rows(self, model: str) -> list[dict]:
        """The paper's rows of one model, ``'VT-R18'`` or ``'VT-R34'``, with their ``value`` and ``variant``."""
        rows = [row | dict(value=str(row[self.column])) for row in load_tables()[self.key] if row['model'] == model]
        return [row | dict(variant=self.variants[row['value']]) for row in rows]


ABLATIONS = {int(number): AblationTable(**each) for number, each in load_tables()['ablations'].items()}
