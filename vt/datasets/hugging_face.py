"""Classification data sets of Hugging Face's library ``datasets``."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from mmpretrain.datasets import BaseDataset

from vt.errors import UserError
from vt.registry import DATASETS

from .rows import Column, RowsDataset, require_column

if TYPE_CHECKING:
    from datasets import Dataset


class RowSamples(Sequence):
    """Data list of many rows: the dict of a sample is made when it is accessed.

    Attributes:
        address: address of the images; empty if they are files.
    """

    def __init__(self, images: Column, labels: np.ndarray | None, rows: range) -> None:
        self.images, self.labels, self.rows = images, labels, rows
        self.files = images.files()
        self.address = '' if self.files else images.address

    def __deepcopy__(self, memo: dict) -> 'RowSamples':
        return self  # immutable

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return RowSamples(self.images, self.labels, self.rows[index])
        row = self.rows[index]
        info = dict(img_path=(self.files and self.files[row]) or f'{self.images.address}/{row}')
        return info if self.labels is None else dict(info, gt_label=int(self.labels[row]))

    def count_labels(self) -> Counter[int]:
        """Return the number of samples of each label."""
        rows = slice(self.rows.start, self.rows.stop, self.rows.step)
        labels, counts = np.unique([] if self.labels is None else self.labels[rows], return_counts=True)
        return Counter(dict(zip(labels.tolist(), counts.tolist())))


@DATASETS.register_module()
class HuggingFaceDataset(RowsDataset, BaseDataset):
    """Images and labels of a local data set that ``datasets`` reads: Arrow, Parquet, ImageFolder, saved, cached.

    Rows are memory-mapped and images are read on access, so memory hardly grows with the number of images. Samples
    contain ``img_path``, an address or a path that ``LoadImageFromFile`` loads, and ``gt_label``: pipelines for image
    files work. Nothing is downloaded. It needs the extra ``[datasets]``.

    Args:
        data_root, split, name: data set, see :func:`vt.datasets.rows.open_rows`.
        image: column of the images: ``datasets.Image``, or bytes or paths of files.
        label: column of the labels: ``ClassLabel``, whose names are the classes, whole numbers, or strings together
            with ``classes``. None for images without labels.
        classes: class names in the order of labels, or the path of a file with one name per line.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`, such as ``pipeline`` and ``indices``.

    Raises:
        MissingFileError: the data set is not on this machine.
        UserError: it cannot be read, has no such split or column, or has invalid labels.
    """

    def __init__(
        self,
        data_root: str | None = '',
        split: str = 'train',
        name: str | None = None,
        image: str = 'image',
        label: str | None = 'label',
        classes: str | Sequence[str] | None = None,
        **kwargs,
    ) -> None:
        self.locate(data_root, split, name)
        self.image, self.label = image, label
        prefix = dict(img_path=f'{self.address}/{image}')
        kwargs['serialize_data'] = False  # a sample is made of its row
        super().__init__(ann_file='', data_prefix=prefix, classes=classes, **kwargs)

    def load_data_list(self) -> Any:
        """Return the samples in the order of their rows."""
        rows = self.open()
        self.images = self.column(rows, self.image)
        return RowSamples(self.images, None if self.label is None else self._labels(rows), range(len(rows)))

    def _labels(self, rows: 'Dataset') -> np.ndarray:
        where = f'{self.address}/{self.label}'
        require_column(rows, self.label, where)
        feature = rows.features[self.label]
        self.enter_names(getattr(feature, 'names', None))
        labels = rows.select_columns(self.label).with_format('arrow')[:].column(0).to_pylist()
        if getattr(feature, 'dtype', None) in ('string', 'large_string'):
            if not self.names:
                some = ', '.join(sorted({str(label) for label in labels})[:10])
                raise UserError(f'{where} has strings ({some}): set classes to all of them, in the order of labels')
            numbers = {name: number for number, name in enumerate(self.names)}
            labels = [numbers.get(label, label) for label in labels]
        number = len(self.names) if self.names else None
        for row, label in enumerate(labels):
            if type(label) is not int or label < 0 or (number is not None and label >= number):
                known = 'a whole number from 0' if number is None else f'one of the {number} classes'
                raise UserError(f'{where}/{row} is {label!r}, not {known}: correct it, or set label=None for no labels')
        return np.array(labels, np.int64)
