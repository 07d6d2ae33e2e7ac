"""Pictures in rows of data sets of Hugging Face's library ``datasets``, read by an address each.

A picture that a row holds is named ``rows://<data set>/<split>/<column>/<row>``, which mmengine reads as it reads a
path, so the libraries' pipelines load it by their own steps; one that a row only names is that file.
"""

import os
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mmengine.fileio import BaseStorageBackend, register_backend

from vt.errors import MissingFileError, UserError
from vt.image_bounds import check_picture_size
from vt.untrusted_text import printable

if TYPE_CHECKING:
    from datasets import Dataset

PREFIX = 'rows'


class RowsBackend(BaseStorageBackend):
    """What mmengine reads ``rows://`` by; a process knows the columns that it opened, or was handed.

    Attributes:
        columns: by their addresses; of two data sets of one address the one opened last.
    """

    columns: ClassVar[dict[str, 'Column']] = {}

    def get(self, filepath: str) -> bytes:
        """The encoded picture of an address."""
        address, _, row = str(filepath).rpartition('/')
        if address not in self.columns:
            raise MissingFileError(f'{filepath} is of a data set that is not open here: build it first')
        return self.columns[address].read(int(row))

    def get_text(self, filepath: str, encoding: str = 'utf-8') -> str:
        """A picture is no text, but mmengine asks every backend for it."""
        return self.get(filepath).decode(encoding)


class Column:
    """A column of pictures; to a worker process goes where the files are mapped from, not what they hold.

    Args:
        rows: the data set.
        name: of the column.
        address: of its pictures, without the row.
        folder: which paths in it are relative to.

    Raises:
        UserError: there is no such column, or it holds no encoded pictures.
    """

    def __init__(self, rows: 'Dataset', name: str, address: str, folder: Path) -> None:
        import datasets

        require_column(rows, name, address)
        feature = rows.features[name]
        if not _is_picture(feature):
            what = 'encoded pictures (datasets.Image, the bytes or the paths of files) are needed'
            raise UserError(f'{address} is of type {type(feature).__name__}: {what}')
        rows = rows.select_columns(name)
        self.rows = rows.cast_column(name, datasets.Image(decode=False)) if hasattr(feature, 'decode') else rows
        self.name, self.address, self.folder = name, address, folder
        self.enter()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.enter()

    def enter(self) -> None:
        """Have mmengine find it by its address, in this process."""
        RowsBackend.columns[self.address] = self
        register_backend(PREFIX, RowsBackend, prefixes=PREFIX, force=True)

    def places(self) -> list[str]:
        """Of each row the picture's address, or the path of its file where the row holds no more than that.

        Raises:
            UserError: a row names no file but an address.
        """
        addresses = [f'{self.address}/{row}' for row in range(len(self.rows))]
        paths = self._paths()
        for address, path in zip(addresses, paths):
            if path is not None and '://' in path:
                named = f'{address} names {printable(path, 100)}'
                raise UserError(f'{named}, which is no file: nothing is fetched or unpacked here; do it before')
        return [address if path is None else os.path.join(self.folder, path) for address, path in zip(addresses, paths)]

    def _paths(self) -> list[str | None]:
        from pyarrow import compute, types

        column = self.rows.with_format('arrow')[:].column(self.name)
        if types.is_struct(column.type):
            path, content = (compute.struct_field(column, part) for part in ('path', 'bytes'))
            column = compute.if_else(compute.is_null(content), path, None)
        return [None] * len(self.rows) if 'binary' in str(column.type) else column.to_pylist()

    def read(self, row: int) -> bytes:
        """The encoded picture of a row.

        Raises:
            UserError: the row has none, or one that is too large.
        """
        value = self.rows[row][self.name]
        content = value['bytes'] if isinstance(value, dict) else value
        if not content:
            raise UserError(f'{self.address}/{row} holds no picture')
        check_picture_size(BytesIO(content), f'{self.address}/{row}')
        return content


def _is_picture(feature: Any) -> bool:
    import datasets

    if isinstance(feature, dict):
        return {'bytes', 'path'} <= feature.keys()
    kinds = ('binary', 'large_binary', 'string', 'large_string')
    return isinstance(feature, datasets.Image) or getattr(feature, 'dtype', None) in kinds


def require_column(rows: 'Dataset', name: str, where: str) -> None:
    """Raise a UserError that names the columns unless the data set has one of this name."""
    if name not in rows.column_names:
        raise UserError(f'{where}: there is no column {name!r}, there are {", ".join(rows.column_names)}')
