"""Images of any kind with masks of the same names."""

import os
from collections.abc import Sequence

from mmengine import list_from_file
from mmseg.datasets import BaseSegDataset

from vt.errors import UserError
from vt.registry import DATASETS

# What OpenCV and Pillow, which read images and masks, both know.
EXTENSIONS = ('.bmp', '.jpeg', '.jpg', '.pbm', '.pgm', '.png', '.ppm', '.tif', '.tiff', '.webp')


@DATASETS.register_module()
class ImagesAndMasks(BaseSegDataset):
    """Images with a mask each, ``images/a.JPG`` and ``masks/a.png``: found by their names without the suffix.

    Images may lie in folders below ``data_prefix.img_path``, masks then lie in the same ones below ``seg_map_path``;
    without the latter there are none. Hidden files are left out.

    Args:
        extensions: suffixes of images and masks; upper and lower case are the same.
        **kwargs: options of :class:`mmseg.datasets.BaseSegDataset` but the two suffixes. ``ann_file`` holds a name
            without a suffix a line.

    Raises:
        UserError: two images, or two masks, have one name; a name of ``ann_file`` has no image; a suffix is given.
    """

    def __init__(self, extensions: Sequence[str] = EXTENSIONS, **kwargs) -> None:
        for name in {'img_suffix', 'seg_map_suffix'} & kwargs.keys():
            raise UserError(f'ImagesAndMasks takes any suffix: leave {name} out, or set extensions')
        self.extensions = tuple(suffix.lower() for suffix in extensions)
        super().__init__(img_suffix='', seg_map_suffix='', **kwargs)

    def load_data_list(self) -> list[dict]:
        """One dict an image, in alphabetical order; of one without a mask ``seg_map_path`` is no file."""
        images, folder = self._files('img_path'), self.data_prefix.get('seg_map_path')
        masks = self._files('seg_map_path') if folder else {}
        names = [line.strip() for line in list_from_file(self.ann_file)] if self.ann_file else [*images]
        infos = []
        for name in names:
            if name not in images:
                raise UserError(f'{self.ann_file} names {name!r}, of which {self.data_prefix["img_path"]} has no image')
            info = dict(img_path=images[name], label_map=self.label_map, seg_fields=[])
            infos.append(info | dict(reduce_zero_label=self.reduce_zero_label))
            if folder:
                infos[-1]['seg_map_path'] = masks.get(name, os.path.join(folder, f'{name}.png'))
        return infos

    def _files(self, key: str) -> dict[str, str]:
        """Paths of the files below a folder, by their names without the suffix."""
        folder, found = self.data_prefix[key], {}
        for parent, folders, files in os.walk(folder):
            folders[:] = sorted(name for name in folders if not name.startswith('.'))
            for file in sorted(files):
                stem, suffix = os.path.splitext(os.path.join(parent, file))
                if suffix.lower() in self.extensions and not file.startswith('.'):
                    path = stem + suffix
                    other = found.setdefault(os.path.relpath(stem, folder), path)
                    if other != path:
                        raise UserError(f'{other} and {path} have one name: rename one of them, or set extensions')
        return found
