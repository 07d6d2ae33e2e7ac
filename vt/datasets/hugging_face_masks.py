"""Segmentation data sets of Hugging Face's library ``datasets``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mmseg.datasets import BaseSegDataset

from vt.errors import UserError
from vt.registry import DATASETS

from .rows import RowsDataset, require_column

if TYPE_CHECKING:
    from datasets import Dataset


@DATASETS.register_module()
class HuggingFaceSegDataset(RowsDataset, BaseSegDataset):
    """Images and masks of a local data set that ``datasets`` reads, see :class:`vt.HuggingFaceDataset`.

    Samples contain ``img_path`` and ``seg_map_path``, which ``LoadImageFromFile`` and ``LoadAnnotations`` load. A mask
    is a losslessly compressed image, such as a PNG, with one 8-bit label per pixel.

    Args:
        data_root, split, name: data set, see :func:`vt.datasets.rows.open_rows`.
        image, mask: columns of images and masks; ``mask=None`` without masks.
        classes: class names in the order of labels; or the name of a column of ``ClassLabel``, or of lists of it, which
            has the class names.
        metainfo: classes and palette, see :class:`mmseg.datasets.BaseSegDataset`.
        lazy_init: do not open the data set yet.
        **kwargs: other options of :class:`mmseg.datasets.BaseSegDataset`, such as ``pipeline`` and
            ``reduce_zero_label``.

    Raises:
        MissingFileError: the data set is not on this machine.
        UserError: it cannot be read, has no such split or column, or has no class names.
    """

    def __init__(
        self,
        data_root: str | None = '',
        split: str = 'train',
        name: str | None = None,
        image: str = 'image',
        mask: str | None = 'mask',
        classes: str | Sequence[str] | None = None,
        metainfo: dict[str, Any] | None = None,
        lazy_init: bool = False,
        **kwargs,
    ) -> None:
        self.locate(data_root, split, name)
        self.image, self.mask, self.classes = image, mask, classes
        metainfo = dict(metainfo or {})
        if isinstance(classes, str):
            self.names = None if lazy_init else self._names(self.open())
            metainfo |= dict(classes=self.names) if self.names else {}
        elif classes:
            metainfo['classes'] = [*classes]
        prefix = dict(img_path=f'{self.address}/{image}', seg_map_path=f'{self.address}/{mask}')
        super().__init__(data_prefix=prefix, metainfo=metainfo, lazy_init=lazy_init, **kwargs)

    def load_data_list(self) -> list[dict]:
        """Return one dict per row, in their order."""
        rows = self.open()
        if isinstance(self.classes, str):
            self.enter_names(self._names(rows))
        if self.mask is not None and not self.metainfo.get('classes'):
            raise UserError(f'{self.address} has no class names for its masks: set classes')
        self.images = self.column(rows, self.image)
        common = dict(label_map=self.label_map, reduce_zero_label=self.reduce_zero_label)
        infos = [dict(img_path=path, seg_fields=[], **common) for path in self.images.paths()]
        if self.mask is not None:
            self.masks = self.column(rows, self.mask)
            for info, path in zip(infos, self.masks.paths()):
                info['seg_map_path'] = path
        return infos

    def _names(self, rows: 'Dataset') -> list[str]:
        """Return the class names of a column."""
        require_column(rows, self.classes, self.address)
        feature = rows.features[self.classes]
        names = getattr(getattr(feature, 'feature', feature), 'names', None)
        if not names:
            where = f'{self.address}/{self.classes}'
            raise UserError(f'{where} has no class names: set classes to a list of names, or to a column of ClassLabel')
        return names
