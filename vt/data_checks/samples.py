"""Read samples (an image with its mask, or a video) as the pipeline does, and collect their problems."""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from io import BytesIO

import cv2
import numpy as np
from mmengine import fileio
from mmengine.dataset import BaseDataset
from PIL import ExifTags, Image, UnidentifiedImageError

from vt.datasets.bands import LoadBands, why_unread
from vt.datasets.coco_annotations import LoadCocoMasks
from vt.datasets.colour_masks import LoadColourMasks
from vt.engine.hooks.num_classes import labels_in
from vt.engine.reporting import describe, in_one_line
from vt.image_bounds import check_image_size
from vt.untrusted_text import folded
from vt.video.clips import LoadClips
from vt.video.decoders import open_video

# Pillow's modes that Pillow converts to 8-bit RGB correctly; OpenCV converts others, too, or raises an error.
GOOD_MODES = ('1', 'L', 'LA', 'P', 'PA', 'RGB', 'RGBA', 'RGBX', 'CMYK', 'YCbCr')
SIXTEEN_BIT = ('I;16', 'I;16B', 'I;16L', 'I;16N')
MASK_MODES = ('1', 'L', 'P')
MAX_FRAMES, MAX_PIXELS_READ = 32, 128_000_000  # maximum number of frames and pixels in memory
MIRRORED = (2, 3, 4)  # EXIF orientations that keep height and width


@dataclass(frozen=True)
class Problem:
    """A problem of a file."""

    kind: str  # such as 'missing'
    file: str  # path of the file
    message: str  # the problem; its subject is the file

    def __str__(self) -> str:
        return f'{self.file} {self.message}'


def missing(path: str, reason: str = '') -> Problem:
    """The problem of a missing file; another file may have a name that looks the same but differs in Unicode."""
    folder, name = os.path.split(path)
    near = _names_in(folder).get(folded(name))
    hint = f'; but {near!a} exists, which differs in case or in Unicode normalisation' if near else ''
    return Problem('missing', path, f'does not exist{reason}{hint}')


@lru_cache(maxsize=1)
def _names_in(folder: str) -> dict[str, str]:
    with suppress(OSError):
        return {folded(name): name for name in os.listdir(folder)}
    return {}


@dataclass(slots=True)  # there may be a million
class Sample:
    """Properties of a sample; those from its files are None until it is read."""

    path: str  # path of the image or video; empty if it is in memory
    labels: list[int]
    problems: Sequence[Problem] = ()
    mode: str | None = None  # mode of the image, as Pillow names it, or frame rate of the video
    size: tuple[int, ...] | None = None  # height and width of the image or of the frames
    counts: np.ndarray | None = None  # number of pixels of each label in the mask, at least 256 numbers
    orientation: int = 1  # EXIF orientation by which the image is rotated when it is read; 1 for none
    digest: str | None = None  # digest of the file, or of the pixels of an image in memory
    num_frames: int | None = None  # of a video
    sums: np.ndarray | None = None  # number, sum and sum of squares of the values of each channel, (3, channels)

    @property
    def name(self) -> str:
        """Name for messages."""
        return self.path or 'an image in memory'

    @property
    def key(self) -> str | None:
        """Key that equal images or videos share: the digest of the content if read, else the path; None if unknown."""
        folder, _, name = self.path.rpartition('/')
        return self.digest or (f'{_real_folder(folder)}/{name}' if name else None)


Load = Callable[[dict], dict]  # step of a pipeline
Wrong = Iterator[tuple[str, str]]  # kinds and messages of problems


@dataclass
class SampleReader:
    """Reader of the samples of one data set, which collects their problems."""

    name: str  # name of the data set
    num_classes: int | None  # labels must be below it; None if it is unknown
    ignore_index: int  # label in masks that is also allowed
    load_image: Load | None  # steps of the pipeline that load files; None without them
    load_mask: Load | None
    load_clips: LoadClips | None
    whole: bool = False  # decode all frames of videos, and compute digests of files and sums of channels
    num_channels: int | None = None  # number of channels that the model takes; None if it is unknown

    def describe(self, info: dict) -> Sample:
        """Return a sample without reading files, given its information in the data set."""
        sample = Sample(str(info.get('img_path') or ''), labels_in(info))
        if wrong := self._outside(sample.labels):
            sample.problems = [Problem('label', sample.name, words) for words in wrong]
        if isinstance(image := info.get('img'), np.ndarray):  # in memory
            sample.size, sample.digest = image.shape[:2], digest_of(image)
            sample.sums = sums_of(image) if self.whole else None
        if isinstance(labels := info.get('gt_seg_map'), np.ndarray):
            sample.counts = np.bincount(labels.ravel(), minlength=256)
        return sample

    def __call__(self, info: dict) -> Sample:
        """Read the files of one sample, given its information in the data set."""
        sample = self.describe(info)
        is_drawn = isinstance(self.load_mask, LoadCocoMasks)
        for step, path, look in (
            (self.load_image, sample.path, self._check_image),
            (self.load_clips, sample.path, self._check_video),
            (self.load_mask, sample.path if is_drawn else info.get('seg_map_path'), self._check_mask),
        ):
            if step is not None and path:
                sample.problems = [*sample.problems, *self._check(look, step, path, info, sample)]
        return sample

    def _outside(self, labels: list[int], ignored: int | None = None) -> list[str]:
        """Return what is wrong with labels outside the classes that are not ``ignored``."""
        number = self.num_classes
        if number is None or (labels and min(labels) >= 0 and max(labels) < number):  # of a million samples
            return []
        return [
            f'has the label {label}, outside the {number} classes of {self.name} (0 to {number - 1})'
            for label in labels
            if not (0 <= label < number or label == ignored)
        ]

    def _check(self, look: Callable, step: Load, path: str, info: dict, sample: Sample) -> list[Problem]:
        backend_args = getattr(step, 'backend_args', None) or {}
        is_local = '://' not in path and backend_args.get('backend', 'local') == 'local'
        if is_local and not os.path.isfile(path):
            return [missing(path, '' if path == sample.path else f': it is the mask of {sample.path}')]
        try:
            is_large = step is self.load_clips and not self.whole  # two frames of it are read
            content = b'' if is_large else fileio.get(path, backend_args=backend_args)
            if self.whole and path == sample.path:
                sample.digest = blake2b(content, digest_size=16).hexdigest()
            return [Problem(kind, path, words) for kind, words in look(step, path, BytesIO(content), info, sample)]
        except Exception as error:  # a decoder's, of any type
            words = why_unread(path) or f'cannot be read: {describe(error) or in_one_line(error)}'
            return [Problem('unreadable', path, words)]

    def _check_image(self, step: Load, path: str, file: BytesIO, info: dict, sample: Sample) -> Wrong:
        if isinstance(step, LoadBands):
            image = step.read(path)
            sample.mode = f'with {image.shape[2]} channels of {image.dtype}'
            if self.num_channels not in (None, image.shape[2]):
                words = f'has {image.shape[2]} channels, but the backbone requires {self.num_channels}'
                yield 'mode', f'{words}: set in_channels'
        else:
            check_image_size(file, path)
            # The step may decode other formats than Pillow.
            with suppress(UnidentifiedImageError), Image.open(file) as opened:
                sample.mode = opened.mode
                if getattr(step, 'color_type', 'color') in ('color', 'grayscale'):  # others do not rotate images
                    tags = opened.getexif() if opened.info.get('exif') else {}
                    sample.orientation = tags.get(ExifTags.Base.Orientation, 1)
                if sample.mode not in GOOD_MODES and getattr(step, 'imdecode_backend', 'cv2') != 'cv2':
                    advice = "imdecode_backend='cv2'" if sample.mode in SIXTEEN_BIT else 'vt.LoadBands'
                    yield 'mode', f'has mode {sample.mode}, which Pillow does not scale: use {advice}'
                    return
                yield from _check_pixels(opened)
            image = step(dict(img_path=path))['img']
        sample.size, sample.sums = image.shape[:2], sums_of(image) if self.whole else None

    def _check_video(self, step: LoadClips, path: str, file: BytesIO, info: dict, sample: Sample) -> Wrong:
        video = open_video(path)
        number = sample.num_frames = video.num_frames
        sample.mode, sample.size = f'at {video.fps:.4g} frames/s', video.size
        length = max(1, min(MAX_FRAMES, MAX_PIXELS_READ // math.prod(video.size)))
        parts = [range(first, min(first + length, number)) for first in range(0, number, length)]
        for part in parts if self.whole else [[0, number - 1]]:
            video.read(part)
        yield from ()

    def _check_mask(self, step: Load, path: str, file: BytesIO, info: dict, sample: Sample) -> Wrong:
        if not isinstance(step, LoadCocoMasks):  # else there is no file of the mask
            check_image_size(file, path)
            with Image.open(file) as opened:
                mode, kind = opened.mode, opened.format
            if mode not in MASK_MODES and not isinstance(step, LoadColourMasks):
                yield 'mode', f'has mode {mode}, but a mask must have one 8-bit label per pixel: convert it'
                return
            if kind == 'JPEG':
                yield 'mode', 'is a JPEG, whose compression changes labels: save masks as PNG'
                return
        labels = step(dict(info, seg_fields=[]))['gt_seg_map']
        if labels.ndim != 2:
            yield 'mode', "is read as RGB by imdecode_backend='cv2': use 'pillow' for masks with a palette"
            return
        sample.counts = np.bincount(labels.ravel(), minlength=256)
        if sample.size is not None and labels.shape != sample.size:
            own, image = ('x'.join(map(str, size)) for size in (labels.shape, sample.size))
            why = ', rotated by its EXIF orientation: rotate the mask, too' if sample.orientation > 1 else ''
            what = f'its image {sample.path} has {image}' if path != sample.path else f'is annotated with {own}'
            yield 'size', f'has {own if path != sample.path else image} pixels, but {what}{why}'
        elif sample.orientation in MIRRORED or (sample.orientation > 1 and labels.shape[0] == labels.shape[1]):
            yield 'turned', f'may not fit {sample.path}, which is rotated by its EXIF orientation when it is read'
        for words in self._outside(np.flatnonzero(sample.counts).tolist(), self.ignore_index)[:1]:
            yield 'label', words


def _check_pixels(opened: Image.Image) -> Wrong:
    """Yield what is lost when an image is read with 8 bits and as a single frame."""
    if cv2.__version__ < '5':  # OpenCV 4 accepts truncated images
        opened.load()
    number = 1 if opened.format == 'MPO' else getattr(opened, 'n_frames', 1)  # MPO: a photo with its thumbnail
    if number > 1:
        yield 'frames', f'has {number} frames or pages, of which only the first is read'
    if opened.mode in SIXTEEN_BIT and (highest := int(np.asarray(opened).max())) < 2**14:
        levels = f'values up to {highest}, which become {highest // 256 + 1} of 256 levels'
        yield 'depth', f'has 16 bits with {levels}: scale them, or use vt.LoadBands'


def iter_data_infos(dataset: BaseDataset) -> Iterable[dict]:
    """Return the information of all samples of a data set; do not change it."""
    infos = getattr(dataset, 'data_list', None)
    if isinstance(infos, Sequence) and len(infos) == len(dataset):  # not serialised, so no copy is needed
        return infos
    return map(dataset.get_data_info, range(len(dataset)))


def sums_of(image: np.ndarray) -> np.ndarray:
    """Return number, sum and sum of squares of the values of each channel of an image, ``(3, channels)``."""
    sums = []
    for channel in np.moveaxis(np.atleast_3d(image), 2, 0):
        mean, std = (values.item() for values in cv2.meanStdDev(np.ascontiguousarray(channel, np.float32)))
        sums.append([channel.size, channel.size * mean, channel.size * (std**2 + mean**2)])
    return np.array(sums).T


def digest_of(image: np.ndarray) -> str:
    """Return a digest of the pixels, shape and dtype of an image."""
    return blake2b(f'{image.shape}{image.dtype}'.encode() + image.tobytes(), digest_size=16).hexdigest()


@lru_cache(maxsize=100_000)
def _real_folder(folder: str) -> str:
    return folder if '://' in folder else os.path.realpath(folder)
