"""Segmentation data sets of image and mask files with the same names."""

import os
from collections.abc import Sequence
from pathlib import Path

from mmseg.datasets import BaseSegDataset

from vt.errors import UserError
from vt.files import files_below, read_names
from vt.image_bounds import EXTENSIONS
from vt.registry import DATASETS
from vt.untrusted_text import composed


@DATASETS.register_module()
class ImagesAndMasks(BaseSegDataset):
    """Images with masks that are matched by names without suffix, such as ``images/a.JPG`` and ``masks/a.png``.

    Images may be in subfolders of ``data_prefix.img_path``; their masks are in the same subfolders of ``seg_map_path``.
    Without ``seg_map_path`` there are no masks. Hidden files are ignored.

    Args:
        extensions: suffixes of images and masks; case is ignored.
        **kwargs: options of :class:`mmseg.datasets.BaseSegDataset` except the two suffixes. ``ann_file`` has one name
            without suffix per line.

    Raises:
        UserError: two images or two masks have the same name, a name in ``ann_file`` has no image, or a suffix is set.
    """

    def __init__(self, extensions: Sequence[str] = EXTENSIONS, **kwargs) -> None:
        for name in {'img_suffix', 'seg_map_suffix'} & kwargs.keys():
            raise UserError(f'ImagesAndMasks accepts all suffixes: remove {name}, or set extensions')
        self.extensions = tuple(suffix.lower() for suffix in extensions)
        super().__init__(img_suffix='', seg_map_suffix='', **kwargs)

    def load_data_list(self) -> list[dict]:
        """Return one dict per image, in alphabetical order; ``seg_map_path`` of a missing mask does not exist."""
        images, folder = self._files('img_path'), self.data_prefix.get('seg_map_path')
        masks = self._files('seg_map_path') if folder else {}
        names = [*map(composed, read_names(self.ann_file))] if self.ann_file else [*images]
        infos = []
        for name in names:
            if name not in images:
                raise UserError(f'{self.ann_file} names {name!r}, but {self.data_prefix["img_path"]} has no such image')
            info = dict(img_path=images[name], label_map=self.label_map, seg_fields=[])
            infos.append(info | dict(reduce_zero_label=self.reduce_zero_label))
            if folder:
                infos[-1]['seg_map_path'] = masks.get(name, os.path.join(folder, f'{name}.png'))
        return infos

    def _files(self, key: str) -> dict[str, str]:
        """Return the paths of the files below a folder, by their names without suffix."""
        folder, found = self.data_prefix[key], {}
        for path in files_below(folder):
            stem, suffix = os.path.splitext(composed(os.path.relpath(path, folder)))
            if suffix.lower() in self.extensions and not any(part.startswith('.') for part in Path(stem).parts):
                other = found.setdefault(stem, path)
                if other != path:
                    raise UserError(f'{other} and {path} have the same name: rename one, or set extensions')
        return found
