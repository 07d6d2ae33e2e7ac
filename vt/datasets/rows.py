"""Data sets on this machine that Hugging Face's library ``datasets`` opens: offline, memory-mapped."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any

from vt.errors import MissingFileError, UserError

from .local_files import check_builder, check_folder, check_saved, is_address
from .row_pictures import PREFIX, Column

if TYPE_CHECKING:
    from datasets import Dataset

OPENING = Lock()  # of data sets, which changes a setting of the libraries for a while
FILES = {'.arrow': None, '.parquet': 'parquet'}  # a file's suffix, and who reads it


class RowsDataset:
    """What both kinds share: where the rows are, and the names of classes that they bring.

    Attributes:
        names: the classes, as the features name them; None where they don't, or before the data set is opened.
    """

    names: list[str] | None = None

    def locate(self, data_root: str, split: str, name: str | None) -> None:
        """Remember where the rows are; nothing is opened."""
        self.source = data_root or '', split, name
        self.address = '/'.join(part for part in (f'{PREFIX}://{data_root}', name, split) if part)

    def open(self) -> 'Dataset':
        """Open the rows; raises as :func:`vt.datasets.rows.open_rows`."""
        return open_rows(*self.source)

    def column(self, rows: 'Dataset', name: str) -> Column:
        """A column of pictures."""
        path = Path(self.source[0]).expanduser()
        return Column(rows, name, f'{self.address}/{name}', path if path.is_dir() else path.parent)

    def enter_names(self, names: list[str] | None) -> None:
        """Compare the classes that the features name with those that the config does.

        Raises:
            UserError: there are not as many.
        """
        given = super().metainfo.get('classes')
        if given and names and len(given) != len(names):
            numbers = f'has {len(names)} classes, the config names {len(given)}'
            raise UserError(f'{self.address} {numbers}: leave classes out, or name as many')
        names = given or names
        self.names = [*names] if names else None

    @property
    def metainfo(self) -> dict[str, Any]:
        """The data set's description; classes are the config's, or else the features'."""
        return super().metainfo | (dict(classes=tuple(self.names)) if self.names else {})

    def extra_repr(self) -> list[str]:
        """Where the rows are."""
        return [f'Rows: \t{self.address}']


def open_rows(data_root: str, split: str, name: str | None = None) -> 'Dataset':
    """Open a data set that is on this machine; nothing is fetched, whatever its files name.

    Args:
        data_root: what ``save_to_disk`` wrote; a file, or a folder of files, of Arrow, which are mapped where they are;
            a file of Parquet; any folder that ``datasets.load_dataset`` reads, of Parquet or images, say, of which it
            keeps a copy in its cache (of images their paths); or the name of a data set in that cache.
        split: of it, such as ``'train'``; where ``load_dataset`` reads it, also a part, ``'train[:80%]'``.
        name: of the configuration, where there are several.

    Raises:
        MissingFileError: it is not here.
        UserError: ``datasets`` is not installed; there is no such split; it can't be read.
    """
    if not data_root:
        raise UserError('set data_root: a folder or file of a data set, or the name of one in the cache of datasets')
    datasets = _import_library()
    path = Path(data_root).expanduser()
    if not path.exists() and is_address(data_root):
        raise UserError(f'{data_root} is an address: nothing is fetched; set data_root to what is on this machine')
    path = path.absolute() if path.exists() else path
    with _offline(datasets):
        try:
            return _open(datasets, path if path.exists() else data_root, split, name)
        except UserError:
            raise
        except (OSError, ValueError, KeyError, RecursionError, datasets.exceptions.DatasetsError) as error:
            if not path.exists() and isinstance(error, (ConnectionError, FileNotFoundError)):
                place = f'there is no {data_root}, and no data set of this name in the cache'
                raise MissingFileError(f'{place}: correct data_root, or fetch it before') from error
            reason = ' '.join(str(error.__cause__ or error).split())
            raise UserError(f'{data_root}, split {split!r}, could not be opened: {reason}') from error


def _open(datasets: ModuleType, path: Path | str, split: str, name: str | None) -> 'Dataset':
    if isinstance(path, str):
        return datasets.load_dataset(path, name, split=split)
    if path.is_file():
        if path.suffix not in FILES:
            raise UserError(f'{path} is no file of {" or ".join(FILES)}: correct data_root')
        if FILES[path.suffix] is None:
            return datasets.Dataset.from_file(str(path))
        return datasets.load_dataset(FILES[path.suffix], data_files=str(path), split='train')
    check_saved(path)
    if (path / datasets.config.DATASETDICT_JSON_FILENAME).is_file():
        splits = datasets.load_from_disk(str(path))
        if split not in splits:
            raise UserError(f'{path} has no split {split!r}: there are {", ".join(splits)}')
        return splits[split]
    if (path / datasets.config.DATASET_STATE_JSON_FILENAME).is_file():
        return datasets.load_from_disk(str(path))
    files = sorted(path.glob('*.arrow'))
    if files:
        named = [file for file in files if re.search(rf'(^|[^a-z]){re.escape(split)}([^a-z]|$)', file.stem)]
        if not named:
            raise UserError(f'{path} has no Arrow file whose name has {split!r} in it: there are {_names(files)}')
        return datasets.concatenate_datasets([datasets.Dataset.from_file(str(file)) for file in named])
    check_folder(path)
    builder = datasets.load_dataset_builder(str(path), name)
    check_builder(builder, path)
    builder.download_and_prepare()
    return builder.as_dataset(split)


def _names(files: list[Path]) -> str:
    return ', '.join(file.name for file in files[:5])


def _import_library() -> ModuleType:
    try:
        import datasets
    except ImportError as error:
        raise UserError("this data set needs datasets: pip install 'visual-transformers[datasets]'") from error
    return datasets


@contextmanager
def _offline(datasets: ModuleType) -> Iterator[None]:
    """While it lasts neither ``datasets`` nor its client of the hub asks any server, as with ``HF_HUB_OFFLINE=1``."""
    from huggingface_hub import constants

    modules = (datasets.config, constants)
    with OPENING:
        before = [module.HF_HUB_OFFLINE for module in modules]
        for module in modules:
            module.HF_HUB_OFFLINE = True
        try:
            yield
        finally:
            for module, value in zip(modules, before):
                module.HF_HUB_OFFLINE = value
