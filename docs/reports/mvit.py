"""The tables of multiscale vision transformers: what each model and each ablation costs, beside what was published."""

from pathlib import Path

from vt.files import read_json

from .complexity import COST
from .markdown import Rows, cells, config_path, table
from .metafiles import read_models

PUBLISHED = Path(__file__).with_name('mvit_models.json')


def describe(models: str, columns: dict[str, str]) -> Rows:
    """A row a model of :data:`PUBLISHED`: these columns, its cost and what was published."""
    found = read_json(PUBLISHED, 'restore it')[models]
    paths = {name: config_path(Path(name).name) for name in found}
    rows = [
        model | dict(path=paths[name], cost=read_models()[paths[name]]['Metadata']) for name, model in found.items()
    ]
    return cells(rows, columns | COST)


MODELS = {'model': '[{title}](../{path})'}
ABLATIONS = {'table': '{table}', 'change': '[{change}](../{path})'}
PLACES = {
    'mvit models': lambda: table(describe('models', MODELS)),
    'mvit ablations': lambda: table(describe('ablations', ABLATIONS)),
}
