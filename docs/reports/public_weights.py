"""The table of public weights: each model by each format, and how far its logits are from the source's own."""

from vt.errors import UserError
from vt.files import read_json

from .markdown import BENCHMARKS, Rows, config_path, table

MEASURED = BENCHMARKS / 'public_weights.json'  # the differences of tests/checkpoints/test_formats.py
FORMATS = ("authors'", 'timm', 'torchvision', 'MMPretrain', 'Hugging Face')
SUFFIXES = ('', '_16xb64-300e_in1k', '_8xb32-90e_in1k')


def describe_public_weights() -> Rows:
    """A row a model: the largest difference of logits, in parts of the largest, by format."""
    measured = read_json(MEASURED, 'see tests/checkpoints/test_formats.py', keys=['differences'])['differences']
    return [
        {'model': f'[`{name}`](../../{_find_config(name)})'} | {source: _tell(found.get(source)) for source in FORMATS}
        for name, found in sorted(measured.items())
    ]


def _find_config(name: str) -> str:
    return next(path for suffix in SUFFIXES if (path := _path(f'{name}{suffix}')) and '_base_' not in path)


def _path(name: str) -> str | None:
    try:
        return config_path(name)
    except UserError:
        return None


def _tell(difference: float | None) -> str:
    return '-' if difference is None else f'{difference:.0e}' if difference else 'the same'


PLACES = {'public weights': lambda: table(describe_public_weights())}
