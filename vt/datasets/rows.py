"""Open local data sets with Hugging Face's library ``datasets``, offline and memory-mapped.

The image or video of a row has the address ``rows://<data set>/<split>/<column>/<row>``, which mmengine reads like a
path, so the usual steps of pipelines load it. If a row contains only the path of an image, that file is read.
"""

import glob
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

from .local_files import SPLITS, STATE, check_builder, check_folder, check_saved, is_address

if TYPE_CHECKING:
    from datasets import Dataset

PREFIX = 'rows'
OPENING = Lock()  # opening a data set temporarily changes a setting of the libraries
FILES = {'.arrow': None, '.parquet': 'parquet'}  # suffixes, and the reader for each


class RowsBackend(BaseStorageBackend):
    """mmengine's file backend for ``rows://``.

    Attributes:
        columns: columns by their addresses that this process has opened or received; the last one per address.
    """

    columns: ClassVar[dict[str, 'Column']] = {}

    def get(self, filepath: str) -> bytes:
        """Return the encoded image of an address."""
        address, row = str(filepath).rsplit('/', 1)
        if address not in self.columns:
            raise MissingFileError(f'the data set of {filepath} is not open in this process: build it first')
        return self.columns[address].read(int(row))

    def get_text(self, filepath: str, encoding: str = 'utf-8') -> str:
        """Return the content as text; mmengine requires this method."""
        return self.get(filepath).decode(encoding)


class Column:
    """Column of images or videos that mmengine finds by their ``address``, in this process and in any that receives it.

    When it is sent to a worker process, only the locations of its files are copied.

    Args:
        rows: the data set.
        name: name of the column.
        address: address of its images, without the row.
        folder: folder to which paths in the column are relative.

    Raises:
        UserError: the column does not exist or does not contain encoded images.
    """

    def __init__(self, rows: 'Dataset', name: str, address: str, folder: Path) -> None:
        require_column(rows, name, address)
        feature = rows.features[name]
        if not _is_encoded(feature):
            what = 'encoded images or videos (datasets.Image or Video, the bytes or the paths of files) are needed'
            raise UserError(f'{address} is of type {type(feature).__name__}: {what}')
        rows = rows.select_columns(name)
        self.rows = rows.cast_column(name, type(feature)(decode=False)) if hasattr(feature, 'decode') else rows
        self.name, self.address, self.folder = name, address, folder
        self.enter()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.enter()

    def enter(self) -> None:
        """Make mmengine find the images by their address in this process."""
        RowsBackend.columns[self.address] = self
        register_backend(PREFIX, RowsBackend, prefixes=PREFIX, force=True)

    def paths(self) -> list[str]:
        """Return the address or the path of the image of each row; errors as of :meth:`files`."""
        files = self.files() or [None] * len(self.rows)
        return [file or f'{self.address}/{row}' for row, file in enumerate(files)]

    def files(self) -> list[str | None]:
        """Return the path of the file of each row that contains only a path; an empty list if there is none.

        Raises:
            UserError: an image is missing or remote.
        """
        from pyarrow import compute, types

        path = content = self.rows.with_format('arrow')[:].column(self.name)
        if types.is_struct(content.type):
            path = compute.struct_field(content, 'path').cast('large_string')  # of type null if all are
            content = compute.struct_field(content, 'bytes').cast('large_binary')
            path = compute.if_else(compute.is_null(content), path, None)
        lengths = (compute.fill_null(compute.binary_length(part), 0) for part in (path, content))
        missing = compute.equal(compute.add(*lengths), 0)
        if number := compute.sum(missing).as_py():
            first = f'{self.address}/{compute.index(missing, True)} is null or empty'
            raise UserError(
                f'{first}, as are {number} of {len(path)} rows: remove them, as with datasets.Dataset.filter'
            )
        if 'binary' in str(path.type) or path.null_count == len(path):
            return []
        files = path.to_pylist()
        for row, file in enumerate(files):
            if file is not None and '://' in file:
                named = f'{self.address}/{row} names {printable(file, 100)}'
                raise UserError(f'{named}, but nothing is downloaded or unpacked: do that first')
        return [file and os.path.join(self.folder, file) for file in files]

    def read(self, row: int) -> bytes:
        """Return the encoded image or video of a row; UserError if the image is too large."""
        value = self.rows[row][self.name]
        content = value['bytes'] if isinstance(value, dict) else value
        check_image_size(BytesIO(content), f'{self.address}/{row}')
        return content


def _is_encoded(feature: Any) -> bool:
    import datasets

    if isinstance(feature, dict):
        return {'bytes', 'path'} <= feature.keys()
    kinds = ('binary', 'large_binary', 'string', 'large_string')
    return isinstance(feature, (datasets.Image, datasets.Video)) or getattr(feature, 'dtype', None) in kinds


def require_column(rows: 'Dataset', name: str, where: str) -> None:
    """Raise ``UserError`` if a data set has no column of this name."""
    if name not in rows.column_names:
        raise UserError(f'{where}: there is no column {name!r}, there are {", ".join(rows.column_names)}')


class RowsDataset:
    """Mixin of data sets of rows: their location and class names.

    Attributes:
        names: class names of the config or the features; None without any, or before the data set is opened.
        found_names: class names of the features.
    """

    names: list[str] | None = None
    found_names: tuple[str, ...] | None = None

    def locate(self, data_root: str, split: str, name: str | None) -> None:
        """Store the location of the rows without opening them; one data set has one address in all splits."""
        self.source = data_root or '', split, name
        split = '' if data_root and is_single(Path(data_root).expanduser()) else split
        self.address = '/'.join(part for part in (f'{PREFIX}://{data_root}', name, split) if part)

    def open(self) -> 'Dataset':
        """Open the rows; errors as of :func:`vt.datasets.rows.open_rows`."""
        return open_rows(*self.source)

    def column(self, rows: 'Dataset', name: str) -> Column:
        """Return a column of images."""
        path = Path(self.source[0]).expanduser()
        return Column(rows, name, f'{self.address}/{name}', path if path.is_dir() else path.parent)

    def enter_names(self, names: list[str] | None) -> None:
        """Store the class names of the features; UserError if the config has another number of classes."""
        given = super().metainfo.get('classes')
        if given and names and len(given) != len(names):
            numbers = f'has {len(names)} classes, but the config has {len(given)}'
            raise UserError(f'{self.address} {numbers}: remove classes, or set as many')
        self.found_names = tuple(names) if names else None
        names = given or names
        self.names = [*names] if names else None

    @property
    def metainfo(self) -> dict[str, Any]:
        """Description of the data set; classes are those of the config, or else those of the features."""
        return super().metainfo | (dict(classes=tuple(self.names)) if self.names else {})

    def extra_repr(self) -> list[str]:
        """Return a line with the location of the rows."""
        return [f'Rows: \t{self.address}']


def open_rows(data_root: str, split: str, name: str | None = None) -> 'Dataset':
    """Open a data set on this machine; nothing is downloaded, whatever its files refer to.

    Args:
        data_root: folder that ``save_to_disk`` wrote; file or folder of Arrow, which is memory-mapped; Parquet file;
            any folder that ``datasets.load_dataset`` reads, such as one of Parquet files or images, of which it keeps a
            copy in its cache (only paths of images); or the name of a data set in that cache.
        split: split such as ``'train'``; with ``load_dataset`` also a part of it, ``'train[:80%]'``. A file, and a
            folder of one data set, have all rows in any split, unless the folder says which split it is.
        name: name of the configuration, if ``load_dataset`` reads several.

    Raises:
        MissingFileError: the data set is not on this machine.
        UserError: ``datasets`` is not installed, the split does not exist, ``name`` or a part of a split has no effect,
            or the data set cannot be read.
    """
    if not data_root:
        raise UserError('data_root is empty: set a folder or file of a data set, or the name of one in the cache')
    try:
        import datasets.exceptions
    except ImportError as error:
        raise UserError("this data set needs datasets: pip install 'visual-transformers[datasets]'") from error
    path = Path(data_root).expanduser()
    if not path.exists() and is_address(data_root):
        raise UserError(f'{data_root} is an address, but nothing is downloaded: set data_root to a local data set')
    with _offline(datasets):
        try:
            return _open(datasets, path.absolute() if path.exists() else data_root, split, name)
        except UserError:
            raise
        except (OSError, ValueError, KeyError, RecursionError, datasets.exceptions.DatasetsError) as error:
            if not path.exists() and isinstance(error, (ConnectionError, FileNotFoundError)):
                absent = f'there is no {data_root}, and no data set of this name in the cache'
                raise MissingFileError(f'{absent}: correct data_root, or download it first') from error
            reason = ' '.join(str(error.__cause__ or error).split())
            raise UserError(f'{data_root}, split {split!r}, could not be opened: {reason}') from error


def is_single(path: Path) -> bool:
    """Whether a path is a file, or a folder that ``save_to_disk`` wrote of one data set without splits."""
    return path.is_file() or ((path / STATE).is_file() and not (path / SPLITS).is_file())


def _open(datasets: ModuleType, path: Path | str, split: str, name: str | None) -> 'Dataset':
    if isinstance(path, str):
        return datasets.load_dataset(path, name, split=split)
    if is_single(path) and '[' in split:
        raise UserError(f'{path} is one data set, and split={split!r} a part of one: write the part into its own file')
    if name is not None and (is_single(path) or (path / SPLITS).is_file()):
        raise UserError(f'name={name!r} has no effect, since {path} has one configuration: leave it out')
    if path.is_file():
        if path.suffix not in FILES:
            raise UserError(f'{path} is not a file of type {" or ".join(FILES)}: correct data_root')
        if FILES[path.suffix] is None:
            return datasets.Dataset.from_file(str(path))
        return datasets.load_dataset(FILES[path.suffix], data_files=glob.escape(str(path)), split='train')
    check_saved(path)
    if (path / SPLITS).is_file():
        splits = datasets.load_from_disk(str(path))
        if split not in splits:
            raise UserError(f'{path} has no split {split!r}: there are {", ".join(splits)}')
        return splits[split]
    if is_single(path):
        rows = datasets.load_from_disk(str(path))
        if rows.split is not None and str(rows.split) != split:
            raise UserError(f'{path} is the split {str(rows.split)!r}, not {split!r}: correct split or data_root')
        return rows
    files = sorted(path.glob('*.arrow'))
    if files:
        named = [file for file in files if re.search(rf'(^|[^a-z]){re.escape(split)}([^a-z]|$)', file.stem)]
        if not named:
            there = ', '.join(file.name for file in files[:5])
            raise UserError(f'{path} has no Arrow file with {split!r} in its name: there are {there}')
        return datasets.concatenate_datasets([datasets.Dataset.from_file(str(file)) for file in named])
    check_folder(path)
    if glob.has_magic(str(path.resolve())):
        raise UserError(
            f'{path} is a pattern for datasets, which does not read such a folder: rename it without [, * or ?'
        )
    builder = datasets.load_dataset_builder(str(path), name)
    check_builder(builder, path)
    builder.download_and_prepare()
    return builder.as_dataset(split)


@contextmanager
def _offline(datasets: ModuleType) -> Iterator[None]:
    """Set ``datasets`` and its client of the hub to offline mode within the block, as with ``HF_HUB_OFFLINE=1``."""
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
