"""The paper's numbers, as data.

``paper_tables.json`` holds the tables of Wu et al., ICCV 2021 (arXiv 2006.03677).
"""

import json
from dataclasses import dataclass
from pathlib import Path

TABLES = Path(__file__).with_name('paper_tables.json')
DETECTRON2_CLASSES = 54  # COCO-Stuff as detectron2 merges it; the paper's FLOPs of both segmentation tables fit it
# Table, height and width of the images, end of the configs' names.
SEGMENTATION = {
    9: ('table9_coco_stuff_800x1216', (800, 1216), '4xb8-90k_coco-stuff164k-800x1216'),
    10: ('table10_lip_473x473', (473, 473), '4xb24-48k_lip-473x473'),
}


def load_tables() -> dict:
    """Every table of the paper by name; ``source`` says where they are from."""
    return json.loads(TABLES.read_text())


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
    variants: dict

    @property
    def default(self) -> str | int | bool:
        """The value of ``column`` in the paper's model."""
        return next(value for value, name in self.variants.items() if name is None)

    def rows(self, model: str) -> list[dict]:
        """The paper's rows of one model, ``'VT-R18'`` or ``'VT-R34'``."""
        return [row for row in load_tables()[self.key] if row['model'] == model]


ABLATIONS = {
    3: AblationTable(
        'table3_tokenizer',
        'the tokenizer of the first module',
        'tokenizer',
        {'pooling': 'pooling', 'clustering': 'clustering', 'filter': None},
    ),
    4: AblationTable('table4_recurrent', 'recurrent tokenizers', 'recurrent', {True: None, False: 'filters-only'}),
    5: AblationTable(
        'table5_relation',
        'the relation of the tokens',
        'relation',
        {'none': 'no-relation', 'graph_conv': 'graph-conv', 'transformer': None},
    ),
    6: AblationTable(
        'table6_token_count', 'the number of tokens', 'tokens', {16: None, 32: '32-tokens', 64: '64-tokens'}
    ),
    7: AblationTable('table7_projector', 'the projector', 'projector', {True: None, False: 'no-projector'}),
}
