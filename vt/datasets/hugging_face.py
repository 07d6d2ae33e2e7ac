"""Classification data sets of Hugging Face's library ``datasets``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from mmpretrain.datasets import BaseDataset

from vt.errors import UserError
from vt.private_names import name_classes
from vt.registry import DATASETS

from .table_dataset import PREFIX, Column, folder_of, open_rows, values_of

if TYPE_CHECKING:
    from datasets import Dataset


class RowSamples(Sequence):
    """Data list of many rows: the dict of a sample is made when it is accessed.

    Attributes:
        address: address of the images.
        labels: label of each sample; None without labels.
        rows: row of each sample.
    """

    def __init__(self, address: str, labels: np.ndarray | None, rows: range) -> None:
        self.address, self.labels, self.rows = address, labels, rows

    def __deepcopy__(self, memo: dict) -> 'RowSamples':
        return self  # immutable

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return RowSamples(self.address, None if self.labels is None else self.labels[index], self.rows[index])
        info = dict(img_path=f'{self.address}/{self.rows[index]}')
        return info if self.labels is None else dict(info, gt_label=int(self.labels[index]))


@DATASETS.register_module()
class HuggingFaceDataset(BaseDataset):
    """Images and labels of a data set that ``save_to_disk`` of ``datasets`` wrote.

    Rows are memory-mapped and images are read on access, so memory hardly grows with the number of images. Samples
    contain ``img_path``, an address that ``LoadImageFromFile`` loads, and ``gt_label``: pipelines for image files work.
    Nothing is downloaded. It needs the package ``datasets``.

    Args:
        data_root, split: data set, see :func:`vt.datasets.table_dataset.open_rows`.
        image: column of the images: ``datasets.Image``, or bytes of files; also of videos.
        label: column of the labels: ``ClassLabel``, whose names are the classes, or whole numbers. None for images
            without labels.
        classes: class names in the order of labels, or the path of a file with one name per line.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`, such as ``pipeline`` and ``indices``.

    Raises:
        MissingFileError: the data set is not on this machine.
        UserError: it cannot be read, has no such split or column, or has invalid labels.
    """

    found_names: tuple[str, ...] | None = None  # class names in the data

    def __init__(
        self,
        data_root: str | None = '',
        split: str = 'train',
        image: str = 'image',
        label: str | None = 'label',
        classes: str | Sequence[str] | None = None,
        **kwargs,
    ) -> None:
        self.source, self.image, self.label = (data_root or '', split), image, label
        self.address = f'{PREFIX}://{folder_of(*self.source)}'
        prefix = dict(img_path=f'{self.address}/{image}')
        kwargs['serialize_data'] = False  # a sample is made of its row
        super().__init__(ann_file='', data_prefix=prefix, classes=classes, **kwargs)

    def load_data_list(self) -> Any:
        """Return the samples in the order of their rows."""
        rows = open_rows(*self.source)
        self.images = Column(rows, self.image, f'{self.address}/{self.image}')
        return RowSamples(self.images.address, None if self.label is None else self._labels(rows), range(len(rows)))

    def _labels(self, rows: 'Dataset') -> np.ndarray:
        from pyarrow import types

        where = f'{self.address}/{self.label}'
        column = values_of(rows, self.label, where)
        if not types.is_integer(column.type) or column.null_count:
            what = 'labels must be integers: cast the column to ClassLabel, or set label=None for no labels'
            raise UserError(f'{where} is of type {column.type}, with {column.null_count} nulls, but {what}')
        if names := getattr(rows.features[self.label], 'names', None):
            self.found_names = tuple(names)
            name_classes(self, self.found_names)
        labels, number = column.to_numpy(), len(self.metainfo.get('classes') or ()) or np.inf
        outside = np.flatnonzero((labels < 0) | (labels >= number))
        if len(outside):
            known = 'an integer from 0' if number == np.inf else f'one of the {number} classes'
            raise UserError(f'{where}/{outside[0]} is {labels[outside[0]]}, not {known}: correct the label')
        return labels
