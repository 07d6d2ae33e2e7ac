"""Find the files in the folders of a data set that are not used although they could be, and why."""

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from mmengine.dataset import BaseDataset
from PIL import Image

from vt.files import files_below
from vt.video.dataset import EXTENSIONS

from .samples import Problem, infos_of

MOST_FILES = 200_000  # files of a folder that are checked
# Of cameras, phones and medicine: images that no reader here decodes.
UNREADABLE = {'.heic', '.heif', '.jxl', '.dng', '.cr2', '.cr3', '.nef', '.arw', '.orf', '.raf', '.rw2', '.dcm'}
USABLE = {*Image.registered_extensions(), *EXTENSIONS} | UNREADABLE  # suffixes in lower case; others are expected


def find_left_out(dataset: BaseDataset) -> Iterator[Problem]:
    """Yield a problem for each folder of images, videos or masks and each reason why some of its files are not used.

    Files that a list or ``indices`` leave out, hidden ones, and other masks of an image are expected. The annotations
    must be loaded. Remote folders, and those of data sets without files, are skipped.
    """
    folders = {key: str(dataset.data_prefix.get(key) or '') for key in ('img_path', 'seg_map_path')}
    folders = {key: folder for key, folder in folders.items() if os.path.isdir(folder)}
    used = {key: {os.path.normpath(str(info[key])) for info in infos_of(dataset) if info.get(key)} for key in folders}
    if absent := getattr(dataset, 'absent', None):  # of a list of Kinetics
        yield Problem('left out', str(dataset.ann_file), f'has unused lines: {absent}')
    images, suffix = set(), getattr(dataset, 'img_suffix', '')  # names of images, without suffixes
    for key, folder in folders.items():
        left_out: dict[str, list[str]] = {}
        for path in islice(files_below(folder), MOST_FILES if used[key] else 0):
            name = os.path.relpath(path, folder)
            if key == 'img_path':
                images.add(name.removesuffix(suffix) if suffix else os.path.splitext(name)[0])
            is_used = any(os.path.normpath(path) in paths for paths in used.values())  # both may be in one folder
            reason = None if is_used else _why_not(name, images if key == 'seg_map_path' else None, dataset)
            if reason:
                left_out.setdefault(reason, []).append(path)
        for reason, files in left_out.items():
            yield Problem('left out', folder, f'has unused files ({len(files):,}), such as {files[0]}: {reason}')


def _why_not(name: str, images: set[str] | None, dataset: BaseDataset) -> str | None:
    """Return why a file is not used, or None if that is expected; ``images`` are their names if it is a mask."""
    suffix, extensions = Path(name).suffix.lower(), getattr(dataset, 'extensions', None)
    if suffix not in USABLE or any(part.startswith('.') for part in Path(name).parts):
        return None
    if suffix in UNREADABLE:
        return f'{suffix.upper()[1:]} is not read here: convert such files to JPEG or PNG'
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
        wider = ', '.join(repr(known) for known in sorted({*extensions, suffix}))
        return f'the suffix {suffix} is not in the extensions of the data set: set extensions=[{wider}]'
    return None if os.sep in name or hasattr(dataset, 'img_suffix') else 'not in a class folder: move it into one'
