"""Segmentation data sets of Hugging Face's library ``datasets``."""

from collections.abc import Sequence
from typing import Any

from mmseg.datasets import BaseSegDataset

from vt.errors import UserError
from vt.files import read_names
from vt.registry import DATASETS

from .table_dataset import PREFIX, Column, folder_of, open_rows


@DATASETS.register_module()
class HuggingFaceSegDataset(BaseSegDataset):
    """Images and masks of a data set that ``save_to_disk`` of ``datasets`` wrote, see :class:`vt.HuggingFaceDataset`.

    Samples contain ``img_path`` and ``seg_map_path``, which ``LoadImageFromFile`` and ``LoadAnnotations`` load. A mask
    is a losslessly compressed image, such as a PNG, with one 8-bit label per pixel.

    Args:
        data_root, split: data set, see :func:`vt.datasets.table_dataset.open_rows`.
        image, mask: columns of images and masks; ``mask=None`` without masks.
        classes: class names in the order of labels, or the path of a file with one name per line; also in ``metainfo``.
        metainfo: classes and palette, see :class:`mmseg.datasets.BaseSegDataset`.
        **kwargs: other options of :class:`mmseg.datasets.BaseSegDataset`, such as ``pipeline`` and
            ``reduce_zero_label``.

    Raises:
        MissingFileError: the data set is not on this machine.
        UserError: it cannot be read, has no such split or column, or has masks but no class names.
    """

    def __init__(
        self,
        data_root: str | None = '',
        split: str = 'train',
        image: str = 'image',
        mask: str | None = 'mask',
        classes: str | Sequence[str] | None = None,
        metainfo: dict[str, Any] | None = None,
        **kwargs,
    ) -> None:
        classes = read_names(classes) if isinstance(classes, str) else classes
        metainfo = dict(metainfo or {}) | (dict(classes=[*classes]) if classes else {})
        if mask is not None and not metainfo.get('classes'):
            raise UserError('HuggingFaceSegDataset requires class names for its masks: set classes')
        self.source, address = (data_root or '', split), f'{PREFIX}://{folder_of(data_root or "", split)}'
        self.names = dict(img_path=image) | (dict(seg_map_path=mask) if mask is not None else {})
        prefix = {key: f'{address}/{name}' for key, name in self.names.items()}
        super().__init__(data_prefix=prefix, metainfo=metainfo, **kwargs)

    def load_data_list(self) -> list[dict]:
        """Return one dict per row, in their order."""
        rows = open_rows(*self.source)
        self.columns = {key: Column(rows, name, self.data_prefix[key]) for key, name in self.names.items()}
        common = dict(label_map=self.label_map, reduce_zero_label=self.reduce_zero_label)
        return [
            {key: f'{column.address}/{row}' for key, column in self.columns.items()} | dict(common, seg_fields=[])
            for row in range(len(rows))
        ]
