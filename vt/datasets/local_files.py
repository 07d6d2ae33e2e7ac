"""Check that the folder of a data set refers only to files inside it.

``datasets`` opens every address in the card or state of a folder, even in offline mode, so these are checked first.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from vt.checkpoints.files import read_json
from vt.errors import UserError
from vt.untrusted_text import printable

if TYPE_CHECKING:
    from datasets import DatasetBuilder

CARDS = ('README.md', '.huggingface.yaml')
MAX_TEXTS = 1_000_000  # values in a card; a line of YAML may expand to many
SPLITS, STATE = 'dataset_dict.json', 'state.json'  # files that ``save_to_disk`` writes
READERS = ('arrow', 'csv', 'imagefolder', 'json', 'parquet', 'webdataset')  # modules of ``datasets`` that open files


def check_folder(folder: Path) -> None:
    """Raise ``UserError`` if the card of a folder refers to files outside it, or if the folder has a script."""
    if (folder / f'{folder.resolve().name}.py').is_file():
        raise UserError(f'{folder} has a script, {folder.resolve().name}.py, which is not run: remove it')
    for card in CARDS:
        for config in _read_card(folder / card):
            _check(_texts([config.get('data_files') or [], config.get('data_dir') or []]), folder / card)


def check_saved(folder: Path) -> None:
    """Raise ``UserError`` if the files that ``save_to_disk`` wrote refer to files outside the folder."""
    splits = [*_texts(_read_saved(folder / SPLITS).get('splits', []))]
    _check(splits, folder / SPLITS)
    for state in (folder / split / STATE for split in ('.', *splits)):
        _check(_texts(_read_saved(state).get('_data_files', [])), state)


def check_builder(builder: 'DatasetBuilder', folder: Path) -> None:
    """Raise ``UserError`` if files that the library found are outside the folder, or if its format is not supported."""
    reader = type(builder).__module__.rpartition('.')[2]
    if reader not in READERS:
        raise UserError(f'{folder} has the format {reader} of datasets: use one of {", ".join(READERS)}')
    inside = folder.resolve()
    _check((file for file in _texts(builder.config.data_files or []) if not Path(file).is_relative_to(inside)), folder)


def is_address(text: str) -> bool:
    """Return whether a string is not a path of a file for ``datasets`` or mmengine."""
    return '://' in text or '::' in text or bool(urlparse(text).scheme)


def _check(texts: Iterator[str] | list[str], where: Path) -> None:
    for text in texts:
        named = f'{where} names {printable(text, 100)}, '
        if is_address(text):
            raise UserError(f'{named}an address, but nothing is downloaded: put the files into the folder')
        if Path(text).is_absolute() or text.startswith('~') or '..' in Path(text).parts:
            raise UserError(f'{named}which is outside of the folder: put the files into it')


def _read_card(path: Path) -> list[dict]:
    """Return the configurations of a data set in a card."""
    import yaml
    from huggingface_hub import DatasetCard

    if not path.is_file():
        return []
    try:
        card = DatasetCard.load(path).data.to_dict() if path.suffix == '.md' else yaml.safe_load(path.read_text())
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f'{path} cannot be read: {printable(error, 200)}') from error
    for number, _ in enumerate(_texts(card)):
        if number == MAX_TEXTS:
            raise UserError(f'{path} expands to more than {MAX_TEXTS:,} values: remove it')
    configs = card.get('configs') if isinstance(card, dict) else None
    if not (configs is None or (isinstance(configs, list) and all(isinstance(config, dict) for config in configs))):
        raise UserError(f'{path}: configs is not a list of configurations: correct it')
    return configs or []


def _read_saved(path: Path) -> dict:
    return read_json(path, 'save the data set again') if path.is_file() else {}


def _texts(value: Any) -> Iterator[str]:
    """Yield all values in nested lists and dicts as strings."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            waiting += value
        else:
            yield str(value)
