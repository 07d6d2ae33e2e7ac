"""Local data sets that Hugging Face's library ``datasets`` saved, memory-mapped.

The image or video of a row has the address ``rows://<folder>/<column>/<row>``, which mmengine reads like a path, so the
usual steps of pipelines load it.
"""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mmengine.fileio import BaseStorageBackend, register_backend

from vt.errors import MissingFileError, UserError
from vt.files import file_in, parse_errors, read_json
from vt.image_bounds import check_image_size

if TYPE_CHECKING:
    from datasets import Dataset
    from pyarrow import ChunkedArray

PREFIX = 'rows'
SPLITS_FILE, STATE_FILE = 'dataset_dict.json', 'state.json'  # files that ``save_to_disk`` writes
HINT = 'data_root must be a folder written by save_to_disk of datasets'


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

    Raises:
        UserError: there is no such column, or a row of it has no encoded image.
    """

    def __init__(self, rows: 'Dataset', name: str, address: str) -> None:
        from pyarrow import compute, types

        content, feature = values_of(rows, name, address), rows.features[name]
        if types.is_struct(content.type) and content.type.get_field_index('bytes') >= 0:
            content = compute.struct_field(content, 'bytes')
        if not (types.is_binary(content.type) or types.is_large_binary(content.type)):
            what = 'encoded images or videos (datasets.Image or Video, or their bytes)'
            raise UserError(f'{address} is of type {type(feature).__name__}, but must contain {what}')
        missing = compute.equal(compute.fill_null(compute.binary_length(content), 0), 0)
        if number := compute.sum(missing).as_py():
            first = f'{address}/{compute.index(missing, True)} is null or empty'
            raise UserError(f'{first}, as are {number} of {len(rows)} rows: remove them, by datasets.Dataset.filter')
        rows = rows.select_columns(name)
        self.rows = rows.cast_column(name, type(feature)(decode=False)) if hasattr(feature, 'decode') else rows
        self.name, self.address = name, address
        self.enter()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.enter()

    def enter(self) -> None:
        """Make mmengine find the images by their address in this process."""
        RowsBackend.columns[self.address] = self
        register_backend(PREFIX, RowsBackend, prefixes=PREFIX, force=True)

    def read(self, row: int) -> bytes:
        """Return the encoded image or video of a row; UserError if the image is too large."""
        value = self.rows[row][self.name]
        content = value['bytes'] if isinstance(value, dict) else value
        check_image_size(BytesIO(content), f'{self.address}/{row}')
        return content


def values_of(rows: 'Dataset', name: str, where: str) -> 'ChunkedArray':
    """Return a column as Arrow's values, which stay in their files; UserError if there is no such column."""
    if name not in rows.column_names:
        raise UserError(f'{where}: there is no column {name!r}; the columns are {", ".join(rows.column_names)}')
    return rows.select_columns(name).with_format('arrow')[:].column(0)


def folder_of(data_root: str, split: str) -> Path:
    """Return the folder of a split: that of its name, or ``data_root`` of one data set, which is its only split."""
    return Path(data_root, split) if Path(data_root, SPLITS_FILE).is_file() else Path(data_root)


def open_rows(data_root: str, split: str) -> 'Dataset':
    """Open a split of a data set that ``save_to_disk`` wrote, memory-mapped; only Arrow files inside are opened.

    Args:
        data_root: the folder.
        split: split such as ``'train'``. A folder of one data set is the split that it states, or any if it states
            none.

    Raises:
        MissingFileError: there is no such data set.
        UserError: ``datasets`` is not installed, there is no such split, or the data set is damaged or leads out of the
            folder.
    """
    try:
        import datasets
    except ImportError as error:
        raise UserError('this data set requires datasets: pip install datasets') from error
    root, folder = Path(data_root), folder_of(data_root, split)
    with parse_errors(root, HINT):
        if root != folder and split not in (names := read_json(root / SPLITS_FILE, HINT, keys=('splits',))['splits']):
            raise UserError(f'{root} has no split {split!r}; its splits are {", ".join(map(str, names))}')
        state = read_json(file_in(root, folder.relative_to(root) / STATE_FILE), HINT, keys=('_data_files',))
        if root == folder and state.get('_split') not in (None, split):
            raise UserError(f'{root} is the split {state["_split"]!r}, not {split!r}: correct split or data_root')
        files = [file_in(root, folder.relative_to(root) / file['filename']) for file in state['_data_files']]
        return datasets.concatenate_datasets([datasets.Dataset.from_file(str(file)) for file in files])
