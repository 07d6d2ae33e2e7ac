"""Find out which files in the folders of a data set are used, and why others are not."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from mmengine.dataset import BaseDataset
from PIL import Image

from vt.folders import files_below
from vt.video.dataset import EXTENSIONS

from .labels import infos_of
from .samples import Problem

MOST_FILES = 200_000  # files of a folder that are checked
# Of cameras, phones and medicine: images that no reader here decodes.
UNREADABLE = ('.heic', '.heif', '.jxl', '.dng', '.cr2', '.cr3', '.nef', '.arw', '.orf', '.raf', '.rw2', '.dcm')
READABLE = {*Image.registered_extensions(), *EXTENSIONS}  # suffixes in lower case
OTHER, SECOND, UNLISTED = 'hidden, or no image or video', 'another mask of an image', 'not in the list or the indices'
EXPECTED = (OTHER, SECOND, UNLISTED)  # reasons that are no problem
SUFFIXES = dict(img_path='img_suffix', seg_map_path='seg_map_suffix')  # MMSegmentation's argument for each folder


@dataclass
class Reason:
    """Reason why files are not used."""

    first: str  # one of the files
    number: int = 0  # number of files


@dataclass
class Coverage:
    """Use of a folder."""

    folder: str
    used: int = 0  # number of files that are samples, or masks of samples
    left_out: dict[str, Reason] = field(default_factory=dict)  # why other files are not used


def look_at_coverage(dataset: BaseDataset) -> list[Coverage]:
    """Return the use of the folders of images, videos and masks of a data set whose annotations are loaded.

    Remote folders, and those of data sets without files, are skipped.
    """
    prefix = dataset.data_prefix if isinstance(dataset.data_prefix, dict) else dict(img_path=dataset.data_prefix)
    if not any(folder and '://' not in str(folder) for folder in prefix.values()):
        return []
    infos, found = infos_of(dataset), []
    used = {key: {os.path.normpath(info[key]) for info in infos if isinstance(info.get(key), str)} for key in SUFFIXES}
    images = str(prefix.get('img_path') or '')
    bases = {_base(path, images, dataset, 'img_path') for path in used['img_path'] if used['seg_map_path']}
    for key, paths in used.items():
        folder = str(prefix.get(key) or '')
        if not paths or '://' in folder or not os.path.isdir(folder) or any('://' in path for path in paths):
            continue
        coverage = Coverage(folder)
        for path in islice(files_below(folder), MOST_FILES):
            own = os.path.normpath(path)
            if own in paths:
                coverage.used += 1
            elif not any(own in others for others in used.values()):  # images and masks may be in one folder
                reason = _why_not(key, path, folder, images, bases, dataset)
                coverage.left_out.setdefault(reason, Reason(path)).number += 1
        found.append(coverage)
    return found


def problems_of(coverages: Iterable[Coverage]) -> list[Problem]:
    """Return a problem for each reason that is not :data:`EXPECTED`."""
    found = [(coverage.folder, *item) for coverage in coverages for item in coverage.left_out.items()]
    return [
        Problem('left out', folder, f'has unused files ({reason.number:,}), such as {reason.first}: {text}')
        for folder, text, reason in found
        if text not in EXPECTED
    ]


def _base(path: str, folder: str, dataset: BaseDataset, key: str) -> str:
    """Return a path relative to a folder without the data set's suffix, or any suffix if the data set has none."""
    name, suffix = os.path.relpath(path, folder), getattr(dataset, SUFFIXES[key], '')
    return name.removesuffix(suffix) if suffix else os.path.splitext(name)[0]


def _why_not(key: str, path: str, folder: str, images: str, bases: set[str], dataset: BaseDataset) -> str:
    """Return why a file is not used; ``bases`` are the names of images that are used."""
    name, suffix = os.path.relpath(path, folder), Path(path).suffix.lower()
    if suffix in UNREADABLE and not os.path.basename(path).startswith('.'):
        return f'{suffix.upper()[1:]} is not read here: convert such files to JPEG or PNG'
    if suffix not in READABLE or any(part.startswith('.') for part in Path(name).parts):
        return OTHER
    is_mask, wanted = key == 'seg_map_path', getattr(dataset, SUFFIXES[key], '')
    if not name.endswith(wanted):  # MMSegmentation's suffixes are case-sensitive
        # An image may have several masks, as in Cityscapes, whose names start with that of the image.
        if is_mask and any(name[: mark.start()] in bases for mark in re.finditer('[._-]', name)):
            return SECOND
        return (
            f"its name does not end in {SUFFIXES[key]}={wanted!r}: rename such files, or use type='vt.ImagesAndMasks'"
        )
    extensions = getattr(dataset, 'extensions', None)
    if is_mask:
        wide = extensions or ()
        image = os.path.join(images, _base(path, folder, dataset, key))
        suffixes = [dataset.img_suffix] if dataset.img_suffix else [*wide, *map(str.upper, wide)]
        return UNLISTED if any(os.path.exists(image + suffix) for suffix in suffixes) else 'a mask without an image'
    if dataset.ann_file or extensions is None:
        return UNLISTED
    if suffix not in extensions:
        wider = ', '.join(repr(known) for known in sorted({*extensions, suffix}))
        return f'the suffix {suffix} is not in the extensions of the data set: set extensions=[{wider}]'
    return UNLISTED if os.sep in name or hasattr(dataset, 'img_suffix') else 'not in a class folder: move it into one'
