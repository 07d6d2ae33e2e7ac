"""Which files of a data set's folders are samples, and why the others are not."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from mmengine.dataset import BaseDataset
from PIL import Image

from vt.video.dataset import EXTENSIONS

from .labels import infos_of
from .samples import Problem

MOST_FILES = 200_000  # of a folder that are looked at
READABLE = {*Image.registered_extensions(), *EXTENSIONS}  # suffixes, in lower case
SUFFIXES = dict(img_path='img_suffix', seg_map_path='seg_map_suffix')  # of folders, in MMSegmentation


@dataclass
class Reason:
    """Why files are left out."""

    text: str  # says it, after "1 file: "
    first: str  # one of the files
    number: int = 0  # of files
    silent: bool = False  # whether this is expected, as of a list of labels beside the images


@dataclass
class Coverage:
    """What of a folder is used."""

    folder: str
    used: int = 0  # files that are samples, or masks of samples
    left_out: dict[str, Reason] = field(default_factory=dict)  # why others are not, by the text


def look_at_coverage(dataset: BaseDataset) -> list[Coverage]:
    """What a data set whose annotations are loaded uses of its folders of images, videos and masks.

    Folders on another machine, and those of a data set that lists no files, are not looked at.
    """
    prefix = dataset.data_prefix if isinstance(dataset.data_prefix, dict) else dict(img_path=dataset.data_prefix)
    if not any(folder and '://' not in str(folder) for folder in prefix.values()):
        return []
    infos, found = infos_of(dataset), []
    used = {key: {os.path.normpath(info[key]) for info in infos if isinstance(info.get(key), str)} for key in SUFFIXES}
    used['img_path'].update(map(os.path.normpath, getattr(dataset, 'copies', ())))  # of one image in several folders
    images = str(prefix.get('img_path') or '')
    bases = {_base(path, images, dataset, 'img_path') for path in used['img_path'] if used['seg_map_path']}
    for key, paths in used.items():
        folder = str(prefix.get(key) or '')
        if not paths or '://' in folder or not os.path.isdir(folder) or any('://' in path for path in paths):
            continue
        coverage = Coverage(folder)
        for path in islice(_files_below(folder), MOST_FILES):
            own = os.path.normpath(path)
            if own in paths:
                coverage.used += 1
            elif not any(own in others for others in used.values()):  # images and masks in one folder
                text, silent = _why_not(key, path, folder, images, bases, dataset)
                reason = coverage.left_out.setdefault(text, Reason(text, path, silent=silent))
                reason.number += 1
        found.append(coverage)
    return found


def problems_of(coverages: Iterable[Coverage]) -> list[Problem]:
    """A problem a reason that is not silent."""
    problems = []
    for coverage in coverages:
        for reason in coverage.left_out.values():
            if not reason.silent:
                noun = 'file is' if reason.number == 1 else 'files are'
                message = f'{reason.number:,} {noun} left out, such as {reason.first}: {reason.text}'
                problems.append(Problem('left out', coverage.folder, message))
    return problems


def _files_below(folder: str) -> Iterator[str]:
    """Every file, of folders in alphabetical order; no link to a folder is followed."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        yield from (os.path.join(parent, file) for file in sorted(files))


def _base(path: str, folder: str, dataset: BaseDataset, key: str) -> str:
    """A path below a folder without the data set's suffix, or its own where the data set takes any."""
    name, suffix = os.path.relpath(path, folder), getattr(dataset, SUFFIXES[key], '')
    return name.removesuffix(suffix) if suffix else os.path.splitext(name)[0]


def _why_not(key: str, path: str, folder: str, images: str, bases: set[str], dataset: BaseDataset) -> tuple[str, bool]:
    """Why a file is no sample, and whether that is expected; ``bases`` are the names of images that are samples."""
    name, suffix = os.path.relpath(path, folder), Path(path).suffix.lower()
    if any(part.startswith('.') for part in Path(name).parts):
        return 'hidden, by a name that begins with a dot', True
    if suffix not in READABLE:
        return f'no image or video, by the suffix {Path(path).suffix or "(none)"}', True
    is_mask, wanted = key == 'seg_map_path', getattr(dataset, SUFFIXES[key], '')
    if not name.endswith(wanted):  # MMSegmentation compares upper and lower case
        # Beside a mask there may be others of the same image, as in Cityscapes: their names begin as the image's does.
        if is_mask and any(name[: mark.start()] in bases for mark in re.finditer('[._-]', name)):
            return 'beside the mask of the same image', True
        advice = "rename, or convert, such files to one suffix, or take type='vt.ImagesAndMasks', which reads any"
        return f'its name does not end in {SUFFIXES[key]}={wanted!r}: {advice}', False
    extensions = getattr(dataset, 'extensions', None)
    if is_mask:
        wide = extensions or ()
        image = os.path.join(images, _base(path, folder, dataset, key))
        suffixes = [dataset.img_suffix] if dataset.img_suffix else [*wide, *map(str.upper, wide)]
        if any(os.path.exists(image + suffix) for suffix in suffixes):
            return 'the mask of an image that is not in the list', True
        return 'a mask whose image is not there', False
    if dataset.ann_file or extensions is None:
        return 'not in the list ann_file', True
    if suffix not in extensions:
        wider = ', '.join(repr(known) for known in sorted({*extensions, suffix}))
        return f'the suffix {suffix} is not in the extensions of the data set: set extensions=[{wider}]', False
    if os.sep in name or hasattr(dataset, 'img_suffix'):
        return 'not among the indices', True
    return 'not in a class folder: move it into one', False
