"""Describe the content of a folder of samples in messages about data that cannot be read or are not all used."""

import os
import re
from collections import Counter
from itertools import islice
from pathlib import Path

from mmengine.dataset import BaseDataset
from mmpretrain.datasets import CustomDataset
from PIL import Image

from vt.errors import UserError
from vt.files import files_below, list_suffixes
from vt.video.dataset import EXTENSIONS

# Names of splits, such as of folders that are no classes.
SPLIT_OF = {'train': 'train', 'training': 'train', 'val': 'val', 'valid': 'val', 'validation': 'val'}
SPLIT_OF |= {'test': 'test', 'testing': 'test'}
MOST_FILES = 200_000  # files of a folder that are checked
# Of cameras, phones and medicine: images that no reader here decodes.
UNREADABLE = {'.heic', '.heif', '.jxl', '.dng', '.cr2', '.cr3', '.nef', '.arw', '.orf', '.raf', '.rw2', '.dcm'}
USABLE = {*Image.registered_extensions(), *EXTENSIONS} | UNREADABLE  # suffixes in lower case; others are expected


def require_split(folder: Path) -> None:
    """Raise a UserError that says how to split, if the folder of a split is missing beside other folders or files."""
    parent = folder.parent
    if folder.is_dir() or not parent.is_dir():
        return
    there = sorted(path.name for path in parent.glob('*/'))
    files = Counter(path.suffix.lower() for path in parent.iterdir() if path.is_file())
    advice = 'set data_prefix of train_dataloader.dataset and val_dataloader.dataset to the folders of the splits'
    if not {name.lower() for name in there} & SPLIT_OF.keys():
        fifth = 'set val_fraction=0.2 to hold out a fifth of each class, or ' if there else ''
        advice = f'{fifth}move images to {parent}/train/CLASS and {parent}/val/CLASS'
    if there or files:
        listed = f'the folders {", ".join(there[:3])}' if there else list_suffixes(files)
        raise UserError(f'there is no {folder}, but {parent} has {listed}: {advice}')


def require_class_folders(dataset: BaseDataset, folder: str) -> None:
    """Raise a UserError that says what is in a folder, and what to do, if it has no class folders with samples."""
    if isinstance(dataset, CustomDataset) and not dataset.ann_file:
        places = Path(folder).glob('*/') if dataset.with_label else [folder]
        if not any(dataset.is_valid_file(path) for place in places for path in files_below(place)):
            advice = f'make a folder for each class, {Path(folder, "CLASS", "FILE")}{table_in(folder)}'
            raise UserError(f'there are no samples: {describe_files(dataset, folder, advice)}')


def describe_files(dataset: BaseDataset, folder: str, advice: str = 'correct its folder, list or suffixes') -> str:
    """Return how many files of each suffix a folder has, and why they are not used, or else ``advice``."""
    paths = [*islice(files_below(folder), MOST_FILES)]
    listed = list_suffixes(Counter(Path(path).suffix.lower() for path in paths))
    if not (isinstance(dataset, CustomDataset) and any(map(dataset.is_valid_file, paths))):
        reasons = (unused_reason(os.path.relpath(path, folder), None, dataset) for path in paths)
        advice = next(filter(None, reasons), advice)
    return f'{folder} has {listed}: {advice}'


def table_in(folder: str) -> str:
    """Return advice if a folder of images, or its parent, has a CSV or TSV table, which class folders do not read."""
    places = (Path(folder), Path(folder).parent)
    tables = [path for place in places for path in sorted(place.glob('*.[cCtT][sS][vV]'))]
    return f"; for labels in {tables[0]} set type='vt.MultiLabelImages' and ann_file" if tables else ''


def unused_reason(name: str, images: set[str] | None, dataset: BaseDataset) -> str | None:
    """Return why a file is not used, or None if that is expected; ``images`` are their names if it is a mask."""
    suffix, extensions = Path(name).suffix.lower(), getattr(dataset, 'extensions', None)
    if suffix not in USABLE or any(part.startswith('.') for part in Path(name).parts):
        return None
    if suffix in UNREADABLE:
        return f'{suffix.upper()[1:]} is not supported: convert such files to JPEG or PNG'
    if images is not None:
        own = getattr(dataset, 'seg_map_suffix', '')
        starts = {name.removesuffix(own)}
        if not (own and name.endswith(own)):
            # An image may have several masks, as in Cityscapes, whose names start with that of the image.
            starts = {name[: mark.start()] for mark in re.finditer('[._-]', name)}
        return None if starts & images else 'a mask without an image'
    if dataset.ann_file:
        return None
    if not name.endswith(wanted := getattr(dataset, 'img_suffix', '')):  # MMSegmentation's suffixes are case-sensitive
        return f"its name does not end in img_suffix={wanted!r}: rename such files, or use type='vt.ImagesAndMasks'"
    if extensions and suffix not in extensions:
        if suffix in EXTENSIONS:
            return 'a video, and this data set has images: move it elsewhere'
        wider = ', '.join(repr(known) for known in sorted({*extensions, suffix}))
        return f'the suffix {suffix} is not in the extensions of the data set: set extensions=[{wider}]'
    return None if os.sep in name or hasattr(dataset, 'img_suffix') else 'not in a class folder: move it into one'
