"""Data set of tar shards in WebDataset's layout, with random access, for samplers and exact resume."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any

import numpy as np
from mmpretrain.datasets import BaseDataset

from vt.errors import FileError, UserError
from vt.image_bounds import check_image_size
from vt.registry import DATASETS

from .rows import PREFIX, Rows, RowsDataset
from .shard_index import NO_LABEL, ShardIndex, kind_of


class ShardSamples(Rows, Sequence):
    """Data list of a sharded data set: the dict of a sample is made when it is accessed."""

    def __init__(self, source: ShardIndex, address: str, rows: range) -> None:
        self.source, self.address, self.rows = source, address, rows
        self.ahead: dict[int, bytes] = {}
        self.enter()

    def __deepcopy__(self, memo: dict) -> 'ShardSamples':
        return self  # immutable

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return ShardSamples(self.source, self.address, self.rows[index])
        row = self.rows[index]
        label = self.source.rows[row].item()[1]
        return dict(img_path=self.name(row)) | ({} if label == NO_LABEL else dict(gt_label=label))

    def name(self, row: int) -> str:
        """Return the address by which mmengine reads a row; it names shard and member."""
        shard, *_, member = self.source.rows[row].item()
        return f'{self.address}/{self.source.shards[shard][0]}#{row}/{member.decode()}'

    def count_labels(self) -> Counter[int]:
        """Return the number of samples of each label."""
        labels = self.source.rows['label'][self.rows.start : self.rows.stop : self.rows.step]
        labels, counts = np.unique(labels[labels != NO_LABEL], return_counts=True)
        return Counter(dict(zip(labels.tolist(), counts.tolist())))

    def identity(self) -> list:
        """Return what the content of the samples depends on: the shards of the index, and its checksums."""
        return [self.source.shards, self.source.rows['crc']]

    def read(self, row: int) -> bytes:
        """Return the content of a row's member; UserError if it differs from the index or the image is too large."""
        content = self.ahead.get(row) or self.source.fetch([row])[0]
        if damage := self.source.damage(row, content):
            raise FileError(f'{self.name(row)} {damage}')
        check_image_size(BytesIO(content), self.name(row))
        return content

    def read_ahead(self, indices: Sequence[int]) -> None:
        """Fetch the members of a batch in parallel, unless the shards are local files."""
        if kind_of(self.source.root):
            self.enter()
            rows = [self.rows[int(index)] for index in indices]
            with suppress(Exception):  # raised again when the sample is read, with its name
                self.ahead = dict(zip(rows, self.source.fetch(rows)))


@DATASETS.register_module()
class ShardedDataset(RowsDataset, BaseDataset):
    """Images or videos with one label each in tar shards of WebDataset's layout: ``000123.jpg`` and ``000123.cls``.

    ``tools/shard.py`` makes shards and their index. A sample is one read at a known offset, of a local file or of an
    address that fsspec supports (``s3://``, ``https://``), and its checksum is verified. Samples have ``img_path``, an
    address that names shard and member and that ``LoadImageFromFile`` and ``vt.LoadClips`` load, and ``gt_label`` if
    there are labels. Pipelines are the same as for files.

    Args:
        data_root: folder or address of the shards, or of the folder that has one folder for each split.
        split: name of that folder, ``''`` for ``data_root`` itself.
        index: path of the index, if it is not beside the shards.
        classes: names of the classes, or path of a file with one name per line; by default those of the index.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`, such as ``pipeline`` and ``indices``.

    Raises:
        MissingFileError: there are no shards, or no index.
        UserError: the index is damaged or older than the shards, or the address needs another package.
    """

    def __init__(
        self,
        data_root: str | None = '',
        split: str = '',
        index: str = '',
        classes: str | Sequence[str] | None = None,
        **kwargs,
    ) -> None:
        self.root, self.index = data_root and '/'.join((data_root.rstrip('/'), split)).rstrip('/'), index
        self.address = f'{PREFIX}://{str(self.root).replace("://", ":/")}'  # mmengine accepts only one ://
        kwargs['serialize_data'] = False  # the data list is the mapped index
        super().__init__(ann_file='', data_prefix=dict(img_path=self.address), classes=classes, **kwargs)

    def load_data_list(self) -> Any:
        """Return the samples in the order of the shards and of their members."""
        if not self.root:
            raise UserError('set data_root: the folder or address of the shards')
        index = ShardIndex(self.root, self.index)
        self.enter_names(index.classes)
        return ShardSamples(index, self.address, range(len(index.rows)))

    def read_ahead(self, indices: Sequence[int]) -> None:
        """Fetch the members of a batch in parallel; see :class:`ShardSamples`."""
        if isinstance(self.data_list, ShardSamples):
            self.data_list.read_ahead(indices)
