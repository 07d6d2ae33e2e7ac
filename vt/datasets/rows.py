"""Data sets on this machine that Hugging Face's library ``datasets`` opens: offline, memory-mapped.

An image that a row holds is named ``rows://<data set>/<split>/<column>/<row>``. mmengine reads that like a path, so the
libraries' pipelines load it by their own steps; one that a row only names is that file. A sample in a shard is named
``rows://<folder>/<shard>.tar#<row>/<member>``.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from mmengine.fileio import BaseStorageBackend, register_backend

from vt.errors import MissingFileError, UserError
from vt.image_bounds import check_image_size
from vt.untrusted_text import printable

from .local_files import check_builder, check_folder, check_saved, is_address

if TYPE_CHECKING:
    from datasets import Dataset

PREFIX = 'rows'
OPENING = Lock()  # of data sets, which changes a setting of the libraries for a while
IN_SHARD = re.compile(r'(.+?)/[^/]+\.tar#(\d+)/')
FILES = {'.arrow': None, '.parquet': 'parquet'}  # a file's suffix, and who reads it


class RowsBackend(BaseStorageBackend):
    """What mmengine reads ``rows://`` by; a process knows the columns that it opened, or was handed.

    Attributes:
        columns: by their addresses; of two data sets of one address the one opened last.
    """

    columns: ClassVar[dict[str, Any]] = {}

    def get(self, filepath: str) -> bytes:
        """The encoded image of an address."""
        in_shard = IN_SHARD.match(str(filepath))
        address, row = in_shard.groups() if in_shard else str(filepath).rsplit('/', 1)
        if address not in self.columns:
            raise MissingFileError(f'{filepath} is of a data set that is not open here: build it first')
        return self.columns[address].read(int(row))

    def get_text(self, filepath: str, encoding: str = 'utf-8') -> str:
        """An image is no text, but mmengine asks every backend for it."""
        return self.get(filepath).decode(encoding)


class Rows:
    """Samples that mmengine finds by their ``address``, in this process and in any that is handed them."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.enter()

    def enter(self) -> None:
        """Have mmengine find them in this process."""
        RowsBackend.columns[self.address] = self
        register_backend(PREFIX, RowsBackend, prefixes=PREFIX, force=True)


class Column(Rows):
    """A column of images; to a worker process goes where the files are mapped from, not what they hold.

    Args:
        rows, name: the data set, and the column's name; a UserError if it holds no encoded images.
        address: of its images, without the row.
        folder: which paths in it are relative to.
    """

    def __init__(self, rows: 'Dataset', name: str, address: str, folder: Path) -> None:
        import datasets

        require_column(rows, name, address)
        feature = rows.features[name]
        if not _is_image(feature):
            what = 'encoded images (datasets.Image, the bytes or the paths of files) are needed'
            raise UserError(f'{address} is of type {type(feature).__name__}: {what}')
        rows = rows.select_columns(name)
        self.rows = rows.cast_column(name, datasets.Image(decode=False)) if hasattr(feature, 'decode') else rows
        self.name, self.address, self.folder = name, address, folder
        self.enter()

    def paths(self) -> list[str]:
        """Of each row the image's address, or the path of the file that it names; a UserError if that is no file."""
        from pyarrow import compute, types

        column = self.rows.with_format('arrow')[:].column(self.name)
        if types.is_struct(column.type):
            path, content = (compute.struct_field(column, part) for part in ('path', 'bytes'))
            column = compute.if_else(compute.is_null(content), path, None)
        files = [None] * len(self.rows) if 'binary' in str(column.type) else column.to_pylist()
        paths = []
        for row, file in enumerate(files):
            address = f'{self.address}/{row}'
            if file is not None and '://' in file:
                named = f'{address} names {printable(file, 100)}'
                raise UserError(f'{named}, which is no file: nothing is fetched or unpacked here; do it before')
            paths.append(address if file is None else os.path.join(self.folder, file))
        return paths

    def read(self, row: int) -> bytes:
        """The encoded image of a row; a UserError if it has none, or one that is too large."""
        value = self.rows[row][self.name]
        content = value['bytes'] if isinstance(value, dict) else value
        if not content:
            raise UserError(f'{self.address}/{row} holds no image')
        check_image_size(BytesIO(content), f'{self.address}/{row}')
        return content


def _is_image(feature: Any) -> bool:
    import datasets

    if isinstance(feature, dict):
        return {'bytes', 'path'} <= feature.keys()
    kinds = ('binary', 'large_binary', 'string', 'large_string')
    return isinstance(feature, datasets.Image) or getattr(feature, 'dtype', None) in kinds


def require_column(rows: 'Dataset', name: str, where: str) -> None:
    """Raise a UserError that names the columns unless the data set has one of this name."""
    if name not in rows.column_names:
        raise UserError(f'{where}: there is no column {name!r}, there are {", ".join(rows.column_names)}')


class RowsDataset:
    """What both kinds share: where the rows are, and the names of classes that they bring.

    Attributes:
        names: the classes, as the features name them; None where they don't, or before the data set is opened.
    """

    names: list[str] | None = None
    found_names: tuple[str, ...] | None = None  # by the features alone

    def locate(self, data_root: str, split: str, name: str | None) -> None:
        """Remember where the rows are; nothing is opened."""
        self.source = data_root or '', split, name
        self.address = '/'.join(part for part in (f'{PREFIX}://{data_root}', name, split) if part)

    def open(self) -> 'Dataset':
        """Open the rows; raises as :func:`vt.datasets.rows.open_rows`."""
        return open_rows(*self.source)

    def column(self, rows: 'Dataset', name: str) -> Column:
        """A column of images."""
        path = Path(self.source[0]).expanduser()
        return Column(rows, name, f'{self.address}/{name}', path if path.is_dir() else path.parent)

    def enter_names(self, names: list[str] | None) -> None:
        """Keep the classes that the features name; a UserError if the config names another number of them."""
        given = super().metainfo.get('classes')
        if given and names and len(given) != len(names):
            numbers = f'has {len(names)} classes, the config names {len(given)}'
            raise UserError(f'{self.address} {numbers}: leave classes out, or name as many')
        self.found_names = tuple(names) if names else None
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
    try:
        import datasets.exceptions
    except ImportError as error:
        raise UserError("this data set needs datasets: pip install 'visual-transformers[datasets]'") from error
    path = Path(data_root).expanduser()
    if not path.exists() and is_address(data_root):
        raise UserError(f'{data_root} is an address: nothing is fetched; set data_root to what is on this machine')
    with _offline(datasets):
        try:
            return _open(datasets, path.absolute() if path.exists() else data_root, split, name)
        except UserError:
            raise
        except (OSError, ValueError, KeyError, RecursionError, datasets.exceptions.DatasetsError) as error:
            if not path.exists() and isinstance(error, (ConnectionError, FileNotFoundError)):
                absent = f'there is no {data_root}, and no data set of this name in the cache'
                raise MissingFileError(f'{absent}: correct data_root, or fetch it before') from error
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
            there = ', '.join(file.name for file in files[:5])
            raise UserError(f'{path} has no Arrow file whose name has {split!r} in it: there are {there}')
        return datasets.concatenate_datasets([datasets.Dataset.from_file(str(file)) for file in named])
    check_folder(path)
    builder = datasets.load_dataset_builder(str(path), name)
    check_builder(builder, path)
    builder.download_and_prepare()
    return builder.as_dataset(split)


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
