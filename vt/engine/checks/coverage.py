"""Which files of a data set's folders are samples, and why the others are not."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mmengine.dataset import BaseDataset
from PIL import Image

from vt.video.dataset import EXTENSIONS

from .labels import infos_of
from .samples import Problem

MOST_FILES = 200_000  # of a folder that are looked at
READABLE = {*Image.registered_extensions(), *EXTENSIONS}  # suffixes, in lower case


@dataclass
class Reason:
    """Why files are left out.

    Attributes:
        text: says it, after "1 file: ".
        first: one of the files.
        number: of files.
        silent: whether this is expected, as of a list of labels beside the images.
    """

    text: str
    first: str
    number: int = 0
    silent: bool = False


@dataclass
class Coverage:
    """What of a folder is used.

    Attributes:
        folder: its path.
        used: files that are samples, or masks of samples.
        left_out: the reasons why others are not, by their texts.
    """

    folder: str
    used: int = 0
    left_out: dict[str, Reason] = field(default_factory=dict)

    def problems(self) -> Iterator[Problem]:
        """A problem a reason that is not silent."""
        for reason in self.left_out.values():
            if not reason.silent:
                noun = 'file is' if reason.number == 1 else 'files are'
                message = f'{reason.number:,} {noun} left out, such as {reason.first}: {reason.text}'
                yield Problem('left out', self.folder, message)


def look_at_coverage(dataset: BaseDataset) -> list[Coverage]:
    """What a data set whose annotations are loaded uses of its folders of images, videos and masks.

    Folders on another machine, and those of a data set that lists no files, are not looked at.
    """
    prefix = dataset.data_prefix if isinstance(dataset.data_prefix, dict) else dict(img_path=dataset.data_prefix)
    infos = infos_of(dataset)
    keys = ('img_path', 'seg_map_path')
    used = {key: {os.path.normpath(info[key]) for info in infos if isinstance(info.get(key), str)} for key in keys}
    folders = {key: str(prefix.get(key) or '') for key in keys}
    found = []
    for key, folder in folders.items():
        is_local = '://' not in folder and os.path.isdir(folder) and not any('://' in path for path in used[key])
        if folder and used[key] and is_local:
            found.append(_look_at_folder(key, folders, used, dataset))
    return found


def _look_at_folder(key: str, folders: dict[str, str], used: dict[str, set[str]], dataset: BaseDataset) -> Coverage:
    coverage, images = Coverage(folders[key]), folders['img_path']
    bases = set()
    if key == 'seg_map_path':
        bases = {_without(Path(os.path.relpath(path, images)), dataset, 'img_suffix') for path in used['img_path']}
    for number, path in enumerate(_files_below(coverage.folder)):
        if number == MOST_FILES:
            break
        if os.path.normpath(path) in used[key]:
            coverage.used += 1
        elif not any(os.path.normpath(path) in paths for paths in used.values()):  # images and masks in one folder
            own = Path(path).relative_to(coverage.folder)
            if key == 'seg_map_path':
                text, silent = _why_no_mask(own, images, bases, dataset)
            else:
                text, silent = _why_no_sample(own, dataset)
            reason = coverage.left_out.setdefault(text, Reason(text, path, silent=silent))
            reason.number += 1
    return coverage


def _files_below(folder: str) -> Iterator[str]:
    """Every file, of folders in alphabetical order; no link to a folder is followed."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        yield from (os.path.join(parent, file) for file in sorted(files))


def _no_data(path: Path) -> str | None:
    """Why a file can be neither image, video nor mask."""
    if any(part.startswith('.') for part in path.parts):
        return 'hidden, by a name that begins with a dot'
    return None if path.suffix.lower() in READABLE else f'no image or video, by the suffix {path.suffix or "(none)"}'


def _why_no_sample(path: Path, dataset: BaseDataset) -> tuple[str, bool]:
    """Why a file is no image or video of a data set, and whether that is expected."""
    if reason := _no_data(path):
        return reason, True
    if reason := _other_suffix(path, dataset, 'img_suffix'):
        return reason, False
    extensions, suffix = getattr(dataset, 'extensions', None), path.suffix.lower()
    if dataset.ann_file or extensions is None:
        return 'not in the list ann_file', True
    if suffix not in extensions:
        wider = ', '.join(repr(known) for known in sorted({*extensions, suffix}))
        return f'the suffix {suffix} is not in the extensions of the data set: set extensions=[{wider}]', False
    if len(path.parts) > 1 or hasattr(dataset, 'img_suffix'):
        return 'not among the indices', True
    return 'not in a class folder: move it into one', False


def _why_no_mask(path: Path, images: str, bases: set[str], dataset: BaseDataset) -> tuple[str, bool]:
    """Why a file is no mask of a data set, and whether that is expected; ``bases`` are its images' names."""
    if reason := _no_data(path):
        return reason, True
    if reason := _other_suffix(path, dataset, 'seg_map_suffix'):
        # Beside a mask there may be others of the same image, as in Cityscapes: their names begin as the image's does.
        is_beside = any(str(path)[: mark.start()] in bases for mark in re.finditer('[._-]', str(path)))
        return ('beside the mask of the same image', True) if is_beside else (reason, False)
    base = os.path.join(images, _without(path, dataset, 'seg_map_suffix'))
    wide = getattr(dataset, 'extensions', ())
    suffixes = [dataset.img_suffix] if dataset.img_suffix else [*wide, *(suffix.upper() for suffix in wide)]
    if any(map(os.path.exists, (base + suffix for suffix in suffixes))):
        return 'the mask of an image that is not in the list', True
    return 'a mask whose image is not there', False


def _other_suffix(path: Path, dataset: BaseDataset, name: str) -> str | None:
    """Why MMSegmentation does not take a file by its suffix; it compares upper and lower case."""
    suffix = getattr(dataset, name, '')
    if path.name.endswith(suffix):
        return None
    advice = "rename, or convert, such files to one suffix, or take type='vt.ImagesAndMasks', which reads any"
    return f'its name does not end in {name}={suffix!r}: {advice}'


def _without(path: Path, dataset: BaseDataset, name: str) -> str:
    """A path without the data set's suffix, or its own where the data set takes any."""
    suffix = getattr(dataset, name, '')
    return str(path).removesuffix(suffix) if suffix else str(path.with_suffix(''))


def problems_of(coverages: Iterable[Coverage]) -> list[Problem]:
    """All problems of some folders."""
    return [problem for coverage in coverages for problem in coverage.problems()]
