"""Segmentation data sets of images and annotations in COCO's JSON."""

import os
from typing import Any

from mmseg.datasets import BaseSegDataset

from vt.errors import UserError
from vt.registry import DATASETS
from vt.untrusted_text import composed

from .coco_annotations import BACKGROUND, read_categories, read_coco


@DATASETS.register_module()
class CocoMasks(BaseSegDataset):
    """Images whose masks are drawn from polygons or run lengths in a JSON file of COCO.

    Pipelines load masks by :class:`vt.LoadCocoMasks`. The classes are the categories in the order of their ids, after
    ``background``, unless a category has this name.

    Args:
        ann_file: path of the JSON file.
        metainfo: classes and palette, see :class:`mmseg.datasets.BaseSegDataset`; classes must be those of the file.
        data_root: folder of ``ann_file`` and ``data_prefix.img_path``.
        **kwargs: other options of :class:`mmseg.datasets.BaseSegDataset` except suffixes.

    Raises:
        UserError: the file is not of COCO, has other classes, or an annotation has no segmentation, image or category.
    """

    draws_masks = True  # there are no files of masks

    def __init__(
        self, ann_file: str, metainfo: dict[str, Any] | None = None, data_root: str | None = None, **kwargs
    ) -> None:
        metainfo = dict(metainfo or {})
        if not metainfo.get('classes'):
            path = os.path.join(data_root or '', ann_file)
            metainfo['classes'] = read_categories(read_coco(path), path)[0]
        super().__init__(ann_file, img_suffix='', seg_map_suffix='', metainfo=metainfo, data_root=data_root, **kwargs)

    def load_data_list(self) -> list[dict]:
        """Return one dict per image, in the order of the file, with its labels and segments."""
        content = read_coco(self.ann_file)
        names, labels = read_categories(content, self.ann_file)
        if [*map(composed, self.metainfo['classes'])] != names:
            given = ', '.join(map(str, self.metainfo['classes']))
            raise UserError(f'{self.ann_file} has the classes {", ".join(names)}, but the data set has {given}')
        common: dict[str, Any] = dict(label_map=self.label_map, reduce_zero_label=self.reduce_zero_label, seg_fields=[])
        common['background'] = next((label for label, name in enumerate(names) if name.lower() == BACKGROUND), 0)
        infos: dict[Any, dict] = {}
        for image in content['images']:
            size, path = (
                (image['height'], image['width']),
                os.path.join(self.data_prefix['img_path'], image['file_name']),
            )
            infos[image['id']] = dict(common, img_path=path, annotated_size=size, segments=[])
        for number, annotation in enumerate(content['annotations']):
            info, label = infos.get(annotation['image_id']), labels.get(annotation['category_id'])
            if info is None or label is None or not annotation.get('segmentation'):
                lacks = (
                    'image' if info is None else 'category' if label is None else 'segmentation (polygons or counts)'
                )
                raise UserError(f'{self.ann_file}: annotation {annotation.get("id", number)} has no {lacks}: remove it')
            info['segments'].append((label, annotation['segmentation']))
        return [*infos.values()]
