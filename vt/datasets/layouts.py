"""What the readers of layouts share: a folder, what is asked of it, and the data that were found."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from vt.errors import MissingFileError, UserError
from vt.files import files_below, parse_errors
from vt.image_bounds import EXTENSIONS
from vt.video.dataset import EXTENSIONS as VIDEO_EXTENSIONS

from .class_folders import is_ignored
from .folder_contents import MOST_FILES, SPLIT_OF

IMAGE_FOLDERS = ('images', 'image', 'imgs', 'img', 'img_dir', 'jpegimages')
MOST_LOOKED_UP = 20  # images of a list that are looked up


@dataclass(frozen=True)
class FoundData:
    """What a path was taken for.

    Attributes:
        kind: ``'class folders'``, ``'videos in class folders'``, ``'images and masks'``, ``'images and COCO
            annotations'``, ``'table'`` or ``'rows'``.
        task: ``'classification'``, ``'multi-label'``, ``'segmentation'`` or ``'video'``.
        datasets: configs of the data sets without pipelines, by split: ``'train'``, and ``'val'`` and ``'test'`` where
            they exist.
        description: one line about the data.
        mask_loading: step that takes the place of ``LoadAnnotations`` in pipelines; None for the usual one.
    """

    kind: str
    task: str
    datasets: dict[str, dict]
    description: str
    mask_loading: dict | None = None


Reading = tuple[FoundData, str]  # and what to do for it to be the only one


@dataclass
class Place:
    """A folder; hidden files and folders and those of operating systems are left out."""

    path: str
    folders: dict[str, str] = field(default_factory=dict)  # paths by name
    files: dict[str, str] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)  # paths of the folders that are left out

    def __post_init__(self) -> None:
        with parse_errors(self.path):
            for entry in sorted(os.scandir(self.path), key=lambda entry: entry.name):
                if is_ignored(entry.name):
                    self.ignored += [entry.path] if entry.is_dir() else []
                else:
                    (self.folders if entry.is_dir() else self.files)[entry.name] = entry.path

    @cached_property
    def splits(self) -> dict[str, str]:
        """Names of folders by split, such as ``train2017`` by ``'train'``; UserError if a split has two."""
        return by_split(self.path, {name.rstrip('0123456789'): name for name in self.folders})

    def find(self, names: Sequence[str]) -> list[str]:
        """Return the folders whose names in lower case are among ``names``."""
        return [name for name in self.folders if name.lower() in names]


@dataclass
class Request:
    """A folder to recognise, and what the caller says of it."""

    place: Place
    classes: Sequence[str] | None = None
    colours: Any = None
    why: list[str] = field(default_factory=list)  # reasons why the folder is nearly, but not, of a layout

    @property
    def root(self) -> str:
        """Path of the folder."""
        return self.place.path


def by_split(where: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return values by split, in the order of splits, given those by names of splits; others are left out.

    Raises:
        UserError: two names are of one split, such as ``Train`` and ``train``.
    """
    found: dict[str, str] = {}
    for name, value in names.items():
        split = SPLIT_OF.get(name.lower())
        if split and found.setdefault(split, value) != value:
            raise UserError(f'{where} has {found[split]} and {value}, both for the split {split}: rename one')
    return {split: found[split] for split in ('train', 'val', 'test') if split in found}


def list_splits(datasets: Mapping[str, dict]) -> str:
    """Return the splits for a description."""
    return f'splits {", ".join(datasets)}' if len(datasets) > 1 else 'no splits'


def medium_of(path: str) -> str | None:
    """Return ``'image'`` or ``'video'`` by the suffix of a file; None for others."""
    suffix = os.path.splitext(path)[1].lower()
    return 'image' if suffix in EXTENSIONS else 'video' if suffix in VIDEO_EXTENSIONS else None


def media_in(folder: str) -> tuple[str | None, str | None]:
    """Return the medium of the first image or video in a folder, and in it or else below it."""
    with parse_errors(folder):
        own = _first_medium(entry.path for entry in os.scandir(folder) if entry.is_file())
        return own, own or _first_medium(islice(files_below(folder), MOST_FILES))


def _first_medium(paths: Iterable[str]) -> str | None:
    return next((medium_of(path) for path in paths if medium_of(path) and not is_ignored(os.path.basename(path))), None)


def find_images(request: Request, listing: str, files: Sequence[str], split: str) -> str:
    """Return the folder, in that of the request, of the images that a list or table names.

    It is that of the split, the folder itself, a folder named as those of images, or another one.

    Args:
        request: the folder.
        listing: path of the list, for messages.
        files: images as they are named.
        split: their split.

    Raises:
        MissingFileError: the images are in none of the folders.
        UserError: they are in several.
    """
    place = request.place
    own = [place.splits[split]] if split in place.splits else []
    images = place.find(IMAGE_FOLDERS)
    inner = {name: Place(place.folders[name]).splits.get(split) for name in images}
    own += [os.path.join(name, inside) for name, inside in inner.items() if inside]
    some = files[:: -(-len(files) // MOST_LOOKED_UP)]
    for folders in (own, [''], images, [*place.folders]):
        found = [
            name for name in folders if any(os.path.isfile(os.path.join(request.root, name, file)) for file in some)
        ]
        if len(found) > 1:
            raise UserError(f'{listing} names {some[0]}, which is in {" and in ".join(found)}: write the folder, too')
        if found:
            return found[0]
    raise MissingFileError(f'{listing} names {some[0]}, which is neither in {request.root} nor in a folder in it')
