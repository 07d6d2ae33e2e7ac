"""Recognise images with masks in files."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from mmengine import fileio
from PIL import Image

from vt.errors import UserError
from vt.files import files_below, list_suffixes, parse_errors, read_names
from vt.image_bounds import check_image_size
from vt.untrusted_text import check_class_names

from .folder_contents import MOST_FILES
from .layouts import IMAGE_FOLDERS, FoundData, Place, Reading, Request, by_split, list_splits, media_in, medium_of

MASK_FOLDERS = ('masks', 'mask', 'labels', 'annotations', 'ann_dir', 'segmentationclass')
LIST_FOLDERS = ('', 'splits', 'ImageSets/Segmentation')  # of lists of the images of a split
NAMES_FILE = 'classes.txt'
MOST_MASKS = 20  # masks that are opened
LABEL_MODES = ('1', 'L', 'P')  # Pillow's modes of masks with a label per pixel


def read_masks(request: Request) -> Iterator[Reading]:
    """Yield the reading as folders of images and masks: with folders of splits in or around them, lists, or neither."""
    place, root = request.place, request.root
    lists, left_out = {}, []
    if pair := _find_folders(request, place):
        images, masks = (Place(place.folders[name]).splits for name in pair)
        lists = {} if images else _find_lists(root)
        left_out = [os.path.join(pair[0], name) for split, name in images.items() if split not in masks]
        own = {split: (images[split], masks[split]) for split in images if split in masks}
        folders = {split: tuple(map(os.path.join, pair, names)) for split, names in own.items()}
        folders = folders if images else dict.fromkeys(lists or ('train',), pair)
    else:
        pairs = {split: _find_folders(request, Place(place.folders[name])) for split, name in place.splits.items()}
        folders = {
            split: tuple(os.path.join(place.splits[split], name) for name in own) for split, own in pairs.items() if own
        }
        left_out = [name for split, name in place.splits.items() if split not in folders]
        if not folders:
            return
    if 'train' not in folders:
        raise UserError(f'{root} has images and masks, but no folder train of both')
    datasets: dict[str, dict] = {}
    for split, (images, masks) in folders.items():
        prefix = dict(img_path=images, seg_map_path=masks)
        datasets[split] = dict(type='vt.ImagesAndMasks', data_root=root, data_prefix=prefix)
        datasets[split] |= dict(ann_file=lists[split]) if lists else {}
    metainfo, words, loading = read_mask_classes(request, _sample_masks(root, *folders['train']))
    for dataset in datasets.values():
        dataset['metainfo'] = metainfo
    words = f'{words}, {list_splits(datasets)}{f", without masks {left_out[0]}" if left_out else ""}'
    yield (
        FoundData('images and masks', 'segmentation', datasets, words, loading),
        'move the tables and other annotations out of it',
    )


def _find_folders(request: Request, place: Place) -> tuple[str, str] | None:
    """Return the names of the folders of images and of masks in a folder; None if one is missing."""
    found = []
    for names, what in ((IMAGE_FOLDERS, 'images'), (MASK_FOLDERS, 'masks')):
        own = [name for name in place.find(names) if media_in(place.folders[name])[1] == 'image']
        if len(own) > 1:
            raise UserError(f'{place.path} has the folders {" and ".join(own)}, both of {what}: rename one')
        if not own:
            for name in place.find(names) if found else ():
                suffixes = Counter(Path(path).suffix for path in islice(files_below(place.folders[name]), MOST_FILES))
                request.why.append(f'{place.folders[name]} has {list_suffixes(suffixes)}, but masks must be images')
            return None
        found += own
    return found[0], found[1]


def _find_lists(root: str) -> dict[str, str]:
    """Return the lists of images, such as ``train.txt``, by split."""
    for folder in LIST_FOLDERS:
        path = os.path.join(root, folder)
        files = [name for name in Place(path).files if name.endswith('.txt')] if os.path.isdir(path) else []
        lists = by_split(path, {name.removesuffix('.txt'): os.path.join(folder, name) for name in files})
        if 'train' in lists:
            return lists
    return {}


def _sample_masks(root: str, images: str, masks: str) -> list[str]:
    """Return the paths of some masks with an image, evenly among their names."""
    files: list[dict[str, str]] = []
    for folder in (os.path.join(root, images), os.path.join(root, masks)):
        paths = [path for path in files_below(folder) if medium_of(path) == 'image']
        files.append({os.path.splitext(os.path.relpath(path, folder))[0]: path for path in paths})
    both = sorted(files[0].keys() & files[1].keys())
    if not both:
        first = ' and '.join(next(iter(paths.values()), 'no images') for paths in files)
        raise UserError(f'{root} has {first}: give each mask the name of its image')
    return [files[1][name] for name in both[:: -(-len(both) // MOST_MASKS)]]


def read_mask_classes(request: Request, masks: Sequence[str]) -> tuple[dict[str, Any], str, dict | None]:
    """Return ``metainfo`` of data sets with masks, a description, and the step that loads masks if it is not the usual.

    Args:
        request: the folder; class names are given, or in its file ``classes.txt``, or are the labels in the masks.
        masks: addresses of some masks.

    Raises:
        UserError: masks are in colours that are not given, or are black and white.
    """
    values: set[int] = set()
    for path in masks:
        content = BytesIO(fileio.get(path))
        check_image_size(content, path)
        with parse_errors(path), Image.open(content) as opened:
            if opened.mode not in LABEL_MODES:
                raise UserError(f'has mode {opened.mode}, but a mask must have one 8-bit label per pixel: convert it')
            values |= {*np.flatnonzero(np.bincount(np.asarray(opened, np.uint8).ravel())).tolist()}
    if values in ({0, 255}, {255}):
        raise UserError(f'{request.root} has masks of 0 and 255, and 255 is ignored: write 1 for the second class')
    file = os.path.join(request.root, NAMES_FILE)
    if request.classes is not None or os.path.isfile(file):
        names = request.classes or check_class_names(read_names(file), file)
        return dict(classes=[*names]), f'{len(names)} classes{"" if request.classes else f" of {NAMES_FILE}"}', None
    number = max(values - {255}) + 1
    words = f'{number} classes without names (labels 0 to {number - 1} in {len(masks)} of the masks, 255 is ignored)'
    return dict(classes=[*map(str, range(number))]), words, None
