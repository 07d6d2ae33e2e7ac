"""Recognise images with annotations in COCO's JSON."""

import os
import re
from collections.abc import Iterator, Mapping

from vt.errors import UserError

from .coco_annotations import read_categories, read_coco
from .folder_contents import SPLIT_OF
from .layouts import FoundData, Place, Reading, Request, find_images, list_splits

MOST_FILES = 20  # JSON files that are opened


def read_coco_files(request: Request) -> Iterator[Reading]:
    """Yield the reading as images with annotations in COCO's JSON, of each split or without splits."""
    place, root = request.place, request.root
    folders = dict.fromkeys(['', *place.find(('annotations',))], '')
    folders |= {name: split for split, name in place.splits.items()}
    files: dict[str, list[str]] = {}
    for folder, of_folder in folders.items():
        for name in [name for name in Place(os.path.join(root, folder)).files if name.lower().endswith('.json')]:
            words = [SPLIT_OF[word] for word in re.split('[^a-z]+', name.lower()) if word in SPLIT_OF]
            files.setdefault(of_folder or (words[0] if words else ''), []).append(os.path.join(folder, name))
    if sum(map(len, files.values())) > MOST_FILES:
        request.why.append(f'{root} has more than {MOST_FILES} JSON files, but COCO has one for each split')
        return
    found: dict[str, tuple[str, dict]] = {}
    for split, names in files.items():
        for name in [name for name in names if 'instances' in name.lower()] or names:
            try:
                content = read_coco(os.path.join(root, name))
            except UserError as error:
                request.why.append(str(error))
                continue
            if split in found:
                raise UserError(f'{root} has {found[split][0]} and {name}, two JSON files of COCO: give one of them')
            found[split] = name, content
    if 'train' not in found and len(found) == 1 and '' in found:
        found = {'train': found['']}
    yield from _read_coco(request, {split: found[split] for split in ('train', 'val', 'test') if split in found})


def _read_coco(request: Request, files: Mapping[str, tuple[str, dict]]) -> Iterator[Reading]:
    """Yield the reading of JSON files of COCO, given with their content by split."""
    if 'train' not in files:
        if files:
            request.why.append(f'{next(iter(files.values()))[0]} has annotations of COCO, but there are none of train')
        return
    path = os.path.join(request.root, files['train'][0])
    classes = read_categories(files['train'][1], path)[0]
    if not any(annotation.get('segmentation') for annotation in files['train'][1]['annotations']):
        request.why.append(f'{path} has no polygons or run lengths (segmentation), from which masks are drawn')
        return
    if request.classes is not None and [*request.classes] != classes:
        raise UserError(f'{path} has the classes {", ".join(classes)}: remove classes, which has others')
    datasets, number = {}, 0
    for split, (name, content) in files.items():
        images = [image['file_name'] for image in content['images']]
        number += len(images)
        prefix = dict(img_path=find_images(request, os.path.join(request.root, name), images, split))
        datasets[split] = dict(type='vt.CocoMasks', data_root=request.root, ann_file=name, data_prefix=prefix)
        datasets[split]['metainfo'] = dict(classes=classes)
    words = f'{len(classes)} classes with the background, {number:,} images, {list_splits(datasets)}'
    loading = dict(type='vt.LoadCocoMasks')
    yield FoundData('images and COCO annotations', 'segmentation', datasets, words, loading), f'give {path}'


def read_coco_file(request: Request, path: str) -> Iterator[Reading]:
    """Yield the reading of one JSON file of COCO as training data, with images beside it or around its folder."""
    folder = os.path.dirname(path) or os.curdir
    root = os.path.dirname(folder) or os.curdir if os.path.basename(folder).lower() == 'annotations' else folder
    inner = Request(Place(root), request.classes, why=request.why)
    yield from _read_coco(inner, {'train': (os.path.relpath(path, root), read_coco(path))})
