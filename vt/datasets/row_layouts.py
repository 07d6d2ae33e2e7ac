"""Recognise data sets of Hugging Face's library ``datasets``, by the files that ``save_to_disk`` wrote."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vt.errors import UserError
from vt.files import file_in, read_json

from .layouts import FoundData, Reading, Request, by_split, list_splits
from .mask_layouts import MASK_FOLDERS, MOST_MASKS, read_mask_classes
from .table_dataset import HINT, PREFIX, SPLITS_FILE, STATE_FILE, Column, folder_of, open_rows

INFO_FILE = 'dataset_info.json'
LABEL_COLUMNS = ('label', 'labels', 'class', 'category')


def read_rows(request: Request) -> Iterator[Reading]:
    """Yield the readings as images or videos with labels, and as images with masks."""
    root = request.root
    if SPLITS_FILE in request.place.files:
        names = read_json(Path(root, SPLITS_FILE), HINT, keys=('splits',), shape=dict(splits=[str]))['splits']
        splits = by_split(root, {name: name for name in names})
        if 'train' not in splits:
            raise UserError(f'{root} has the splits {", ".join(names)}, but no train')
    elif STATE_FILE in request.place.files:
        splits = {'train': read_json(Path(root, STATE_FILE), HINT, shape={}).get('_split') or 'train'}
    else:
        return
    inner = splits['train'] if SPLITS_FILE in request.place.files else ''
    shape = dict(features={str: dict | list})
    features = read_json(file_in(root, os.path.join(inner, INFO_FILE)), HINT, keys=('features',), shape=shape)[
        'features'
    ]
    kinds = {name: str(feature.get('_type')) for name, feature in features.items() if isinstance(feature, dict)}
    masks = [name for name, kind in kinds.items() if kind == 'Image' and name.lower() in MASK_FOLDERS]
    images = [name for name, kind in kinds.items() if kind == 'Image' and name not in masks]
    videos = [name for name, kind in kinds.items() if kind == 'Video']
    labels = [name for name in kinds if kinds[name] == 'ClassLabel' or _is_number(name, features[name])]
    for what, found in (('images', images), ('videos', videos), ('masks', masks), ('labels', labels)):
        if len(found) > 1:
            raise UserError(f'{root} has the columns of {what} {", ".join(found)}: keep one, by remove_columns')
    if labels and (images or videos):
        names = _classes_of_labels(request, splits['train'], labels[0], features[labels[0]])
        for image, task in ([(images[0], 'classification')] * len(images)) + [(name, 'video') for name in videos]:
            config = dict(type='vt.HuggingFaceDataset', image=image, label=labels[0])
            config |= dict(classes=names[1]) if names[1] else {}
            yield _reading(request, task, splits, config, f'labels in the column {labels[0]}, {names[0]} classes')
    if masks and images:
        rows = open_rows(root, splits['train'])
        column = Column(rows, masks[0], f'{PREFIX}://{folder_of(root, splits["train"])}/{masks[0]}')
        some = range(0, len(rows), -(-len(rows) // MOST_MASKS) or 1)
        metainfo, words, loading = read_mask_classes(request, [f'{column.address}/{row}' for row in some])
        config = dict(type='vt.HuggingFaceSegDataset', image=images[0], mask=masks[0], metainfo=metainfo)
        yield _reading(request, 'segmentation', splits, config, f'masks in the column {masks[0]}, {words}', loading)
    request.why.append(
        f'the columns are {", ".join(features)}, not an image or video with a label (ClassLabel) or mask'
    )


def _reading(
    request: Request, task: str, splits: Mapping[str, str], config: dict, words: str, loading: dict | None = None
) -> Reading:
    datasets = {split: dict(config, data_root=request.root, split=name) for split, name in splits.items()}
    advice = 'remove the columns of others, by remove_columns'
    return FoundData('rows', task, datasets, f'{words}, {list_splits(datasets)}', loading), advice


def _is_number(name: str, feature: dict) -> bool:
    return name.lower() in LABEL_COLUMNS and 'int' in str(feature.get('dtype'))


def _classes_of_labels(request: Request, split: str, name: str, feature: Mapping[str, Any]) -> tuple[int, list | None]:
    """Return the number of classes of a column of labels, and their names if the column has none."""
    if request.classes is not None:
        return len(request.classes), [*request.classes]
    if feature.get('names'):
        return len(feature['names']), None
    labels = [label for label in open_rows(request.root, split).unique(name) if label is not None]
    return max(labels, default=-1) + 1, [*map(str, range(max(labels, default=-1) + 1))]
