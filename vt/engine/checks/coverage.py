"""Which files of a data set's folders are samples, and why the others are not."""

import os
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
    found = []
    for key in ('img_path', 'seg_map_path'):
        folder = str(prefix.get(key) or '')
        used = {os.path.normpath(info[key]) for info in infos if isinstance(info.get(key), str)}
        if (
            folder
            and '://' not in folder
            and os.path.isdir(folder)
            and used
            and not any('://' in path for path in used)
        ):
            found.append(_look_at_folder(folder, used, key, dataset))
    return found


def _look_at_folder(folder: str, used: set[str], key: str, dataset: BaseDataset) -> Coverage:
    coverage = Coverage(folder)
    for number, path in enumerate(_files_below(folder)):
        if number == MOST_FILES:
            break
        if os.path.normpath(path) in used:
            coverage.used += 1
            continue
        text, silent = _reason(Path(path).relative_to(folder), key, dataset)
        reason = coverage.left_out.setdefault(text, Reason(text, path, silent=silent))
        reason.number += 1
    return coverage


def _files_below(folder: str) -> Iterator[str]:
    """Every file, of folders in alphabetical order; no link to a folder is followed."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        yield from (os.path.join(parent, file) for file in sorted(files))


def _reason(path: Path, key: str, dataset: BaseDataset) -> tuple[str, bool]:
    """Why a file is no sample, and whether that is expected."""
    if any(part.startswith('.') for part in path.parts):
        return 'hidden, by a name that begins with a dot', True
    suffix = path.suffix.lower()
    if suffix not in READABLE:
        return f'no image or video, by the suffix {path.suffix or "(none)"}', True
    if key == 'seg_map_path':
        return _of_segmentation(path, 'seg_map_suffix', dataset) or 'a mask whose image is not there', False
    if getattr(dataset, 'img_suffix', None):
        reason = _of_segmentation(path, 'img_suffix', dataset)
        return (reason, False) if reason else ('not in the list ann_file', True)
    extensions = getattr(dataset, 'extensions', None)
    if dataset.ann_file or extensions is None:
        return 'not in the list ann_file', True
    if suffix not in extensions:
        wider = ', '.join(repr(known) for known in sorted({*extensions, suffix}))
        return f'the suffix {suffix} is not in the extensions of the data set: set extensions=[{wider}]', False
    return 'not in a class folder: move it into one', False


def _of_segmentation(path: Path, name: str, dataset: BaseDataset) -> str | None:
    """Why MMSegmentation does not take a file by its suffix; it compares upper and lower case."""
    suffix = getattr(dataset, name)
    if path.name.endswith(suffix):
        return None
    return f'its name does not end in {name}={suffix!r}: rename, or convert, such files to one suffix'


def problems_of(coverages: Iterable[Coverage]) -> list[Problem]:
    """All problems of some folders."""
    return [problem for coverage in coverages for problem in coverage.problems()]
