"""Recognise images with masks in files, of labels or in colours."""

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

from .colour_masks import check_colours, read_colours
from .folder_contents import MOST_FILES
from .layouts import (
    IMAGE_FOLDERS,
    FoundData,
    Place,
    Reading,
    Request,
    by_split,
    list_splits,
    media_in,
    medium_of,
)

MASK_FOLDERS = ('masks', 'mask', 'labels', 'annotations', 'ann_dir', 'segmentationclass')
LIST_FOLDERS = ('', 'splits', 'ImageSets/Segmentation')  # of lists of the images of a split
NAMES_FILE, COLOUR_FILES = 'classes.txt', ('colours.txt', 'colors.txt', 'labelmap.txt')
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
        request: the folder; class names or colours are given, or are in a file in it, or names are the labels in masks.
        masks: addresses of some masks.

    Raises:
        UserError: masks are in colours that are not given, or are black and white.
    """
    beside = [path for name, path in request.place.files.items() if name.lower() in COLOUR_FILES]
    modes: dict[str, str] = {}
    values: set[int] = set()
    for path in masks:
        content = BytesIO(fileio.get(path))
        check_image_size(content, path)
        with parse_errors(path), Image.open(content) as opened:
            modes.setdefault(opened.mode, path)
            if opened.mode in LABEL_MODES:
                values |= {*np.flatnonzero(np.bincount(np.asarray(opened, np.uint8).ravel())).tolist()}
    others = [mode for mode in modes if mode not in LABEL_MODES]
    if request.colours is not None or (beside and (others or 'P' in modes)):
        return _read_colour_classes(request, beside)
    if others:
        advice = f'for colours, set colours={{name: (r, g, b), ...}} or write {COLOUR_FILES[0]} with lines name r g b'
        raise UserError(
            f'{modes[others[0]]} has mode {others[0]}, but a mask must have one 8-bit label per pixel: {advice}'
        )
    if values in ({0, 255}, {255}):
        advice = 'write 1 for the second class, or set colours={"first": (0, 0, 0), "second": (255, 255, 255)}'
        raise UserError(f'{request.root} has masks of 0 and 255, which is the label of ignored pixels: {advice}')
    file = os.path.join(request.root, NAMES_FILE)
    if names := request.classes or (
        read_names(file) if os.path.isfile(file) else [*read_colours(beside[0])] if beside else None
    ):
        source = '' if request.classes else f' of {os.path.basename(file if os.path.isfile(file) else beside[0])}'
        return dict(classes=[*check_class_names(names, file)]), f'{len(names)} classes{source}', None
    number = max(values - {255}) + 1
    words = f'{number} classes without names (labels 0 to {number - 1} in {len(masks)} of the masks, 255 is ignored)'
    return dict(classes=[*map(str, range(number))]), words, None


def _read_colour_classes(request: Request, beside: Sequence[str]) -> tuple[dict[str, Any], str, dict]:
    """Return what :func:`read_mask_classes` does for masks in colours."""
    given = request.colours
    if given is None or isinstance(given, (str, os.PathLike)):
        path = beside[0] if given is None else os.path.expanduser(given)
        colours, source = read_colours(path), f' of {os.path.basename(path)}'
    else:
        colours, source = check_colours(given, 'colours'), ''
    names = [*(request.classes or colours)]
    if {*names} != colours.keys():
        raise UserError(f'classes has {", ".join(names)}, but colours has {", ".join(colours)}: give a colour of each')
    palette = [[*colours[name]] for name in names]
    loading = dict(type='vt.LoadColourMasks', colours=palette)
    return dict(classes=names, palette=palette), f'{len(names)} classes by the colours{source}', loading
