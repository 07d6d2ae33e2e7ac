"""Samples in tar shards, WebDataset's layout: any of them is one read, so samplers and exact resume hold."""

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
    """What a data set says about each sample of an index, made when it is asked for."""

    def __init__(self, source: ShardIndex, address: str, rows: range) -> None:
        self.source, self.address, self.rows = source, address, rows
        self.ahead: dict[int, bytes] = {}
        self.enter()

    def __deepcopy__(self, memo: dict) -> 'ShardSamples':
        return self  # nothing changes it

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return ShardSamples(self.source, self.address, self.rows[index])
        row = self.rows[index]
        label = self.source.rows[row].item()[1]
        return dict(img_path=self.name(row)) | ({} if label == NO_LABEL else dict(gt_label=label))

    def name(self, row: int) -> str:
        """What mmengine reads a row by, with its shard and member for a person."""
        shard, *_, member = self.source.rows[row].item()
        return f'{self.address}/{self.source.shards[shard][0]}#{row}/{member.decode()}'

    def count_labels(self) -> Counter[int]:
        """How many samples each label has."""
        labels = self.source.rows['label'][self.rows.start : self.rows.stop : self.rows.step]
        labels, counts = np.unique(labels[labels != NO_LABEL], return_counts=True)
        return Counter(dict(zip(labels.tolist(), counts.tolist())))

    def read(self, row: int) -> bytes:
        """The content of a row's member; a UserError if it is not what was indexed, or too large."""
        content = self.ahead.get(row) or self.source.fetch([row])[0]
        if damage := self.source.damage(row, content):
            raise FileError(f'{self.name(row)} {damage}')
        check_image_size(BytesIO(content), self.name(row))
        return content

    def read_ahead(self, indices: Sequence[int]) -> None:
        """Fetch the members of a batch at once; those on this machine are not."""
        if kind_of(self.source.root):
            self.enter()
            rows = [self.rows[int(index)] for index in indices]
            with suppress(Exception):  # which is raised again where the sample is read and named
                self.ahead = dict(zip(rows, self.source.fetch(rows)))


@DATASETS.register_module()
class ShardedDataset(RowsDataset, BaseDataset):
    """Images, or videos, with a label each, in tar shards: ``000123.jpg`` and ``000123.cls``, as of WebDataset.

    ``tools/shard.py`` makes shards and their index. A sample is one read at a known place, on this machine or at an
    address that fsspec reads (``s3://``, ``https://``), and its checksum is compared. Samples hold ``img_path``, an
    address that names shard and member, which ``LoadImageFromFile`` and ``vt.LoadClips`` load, and ``gt_label`` where
    there are labels: pipelines are those of files.

    Args:
        data_root: folder or address of the shards, or of a folder for each split.
        split: such a folder, ``''`` for ``data_root`` itself.
        index: path of the index, where it is not beside the shards.
        classes: names of the classes, or the path of a file with a name a line; those of the index by default.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`, such as ``pipeline`` and ``indices``.

    Raises:
        MissingFileError: there are no shards, or there is no index of them.
        UserError: the index is damaged, or older than the shards; a store needs another package.
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
        self.address = f'{PREFIX}://{str(self.root).replace("://", ":/")}'  # mmengine takes one :// alone
        kwargs['serialize_data'] = False  # there is nothing to serialise
        super().__init__(ann_file='', data_prefix=dict(img_path=self.address), classes=classes, **kwargs)

    def load_data_list(self) -> Any:
        """The samples, in the order of the shards and of their members."""
        if not self.root:
            raise UserError('set data_root: the folder or address of the shards')
        index = ShardIndex(self.root, self.index)
        self.enter_names(index.classes)
        return ShardSamples(index, self.address, range(len(index.rows)))

    def read_ahead(self, indices: Sequence[int]) -> None:
        """Fetch a batch at once, see :class:`ShardSamples`."""
        if isinstance(self.data_list, ShardSamples):
            self.data_list.read_ahead(indices)
