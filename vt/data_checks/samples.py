"""What is seen of a sample, an image with its mask or a video, read as the pipeline reads it."""

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
from mmcv.transforms import BaseTransform
from mmengine import fileio
from PIL import ExifTags, Image

from vt.datasets.bands import LoadBands
from vt.datasets.rows import PREFIX
from vt.engine.checks.classes import labels_in
from vt.engine.errors import in_one_line
from vt.image_bounds import check_image_size
from vt.video.clips import LoadClips
from vt.video.decoders import open_video

# Modes, as Pillow names them, that every decoder turns into the right colours.
GOOD_MODES = ('1', 'L', 'LA', 'P', 'PA', 'RGB', 'RGBA', 'RGBX', 'CMYK', 'YCbCr')
SIXTEEN_BIT = ('I;16', 'I;16B', 'I;16L', 'I;16N')
MASK_MODES = ('1', 'L', 'P')
READ, READ_PIXELS = 32, 128_000_000  # held at a time: so many frames, if they have no more pixels
MOST_COLOURS = 256  # of a mask in colour that are noted
MIRRORED = (2, 3, 4)  # orientations that keep height and width
Colour = tuple[int, ...]


@dataclass(frozen=True)
class Problem:
    """Something wrong with a file."""

    kind: str  # such as 'missing'; vt.commands.check_dataset.CHECKS has all
    file: str  # its path
    message: str  # what is wrong; a predicate of the file
    line: int | None = None  # of a text file

    def __str__(self) -> str:
        where = self.file if self.line is None else f'{self.file}, line {self.line}'
        return f'{where} {self.message}'


@dataclass
class Sample:
    """What was seen of a sample."""

    path: str  # of its image or video
    labels: list[int] = field(default_factory=list)  # its class, or its classes; none where it has no labels
    problems: list[Problem] = field(default_factory=list)
    mode: str | None = None  # of the image, as Pillow names it
    size: tuple[int, ...] | None = None  # height and width of the image, or of a video's frames
    counts: np.ndarray | None = None  # how often each label occurs in the mask, at least 256 numbers
    colours: Collection[Colour] | Collection[int] = ()  # of a mask in colour; of one with more than 8 bits its values
    drawn: Collection[tuple[int, Colour]] = ()  # the labels of a mask that has a palette, and their colours
    orientation: int = 1  # by EXIF, which the image is turned by when it is read; 1 for none
    turned: bool = False  # whether it is turned, and its mask may not be
    digest: str | None = None  # of the file's bytes, or of the pixels of an image in memory
    num_frames: int | None = None  # of a video
    fps: float | None = None  # frames a second of a video
    moments: np.ndarray | None = None  # mean and standard deviation of each channel as it is loaded, two rows


File = Path | BytesIO | None  # of this machine, or what a row of a data set holds; None in a remote store
Load = Callable[[dict], dict]  # a step of the pipeline
Wrong = Iterator[tuple[str, str]]  # kinds and messages of problems


@dataclass(frozen=True)
class SampleReader:
    """Read the samples of one data set, and note what is wrong with them."""

    name: str  # of the data set
    num_classes: int | None  # labels are below it; None where it is not known
    ignore_index: int  # a label of masks that is allowed all the same
    load_image: BaseTransform | None  # the pipeline's step; None for images that are not files
    load_mask: BaseTransform | None
    load_clips: LoadClips | None
    whole: bool = False  # decode all frames of a video; digest each file, take moments of its channels
    num_channels: int | None = None  # of the images that the model takes; None where it is not known

    def __call__(self, info: dict) -> Sample:
        """Look at one sample, given what the data set says about it."""
        sample = Sample(str(info.get('img_path')), labels_in(info))
        if isinstance(image := info.get('img'), np.ndarray):  # made in memory
            sample.size, sample.digest = image.shape[:2], digest_of(image) if self.whole else None
            sample.moments = moments_of(image) if self.whole else None
        if isinstance(labels := info.get('gt_seg_map'), np.ndarray):
            sample.counts = np.bincount(labels.ravel(), minlength=256)
        for step, path, look in (
            (self.load_image, sample.path, self._look_at_image),
            (self.load_clips, sample.path, self._look_at_video),
            (self.load_mask, info.get('seg_map_path'), self._look_at_mask),
        ):
            if step is not None and path:
                sample.problems += self._look(look, step, path, info, sample)
        return sample

    def find_labels_outside(self, info: dict) -> Iterator[Problem]:
        """Labels of a sample that are none of the classes, given what the data set says about it."""
        for label in labels_in(info):
            if self.num_classes is not None and not 0 <= label < self.num_classes:
                message = f'has the label {label}, outside the {self.num_classes} classes of {self.name}'
                yield Problem('label', str(info.get('img_path')), message)

    def _look(self, look: Callable, step: BaseTransform, path: str, info: dict, sample: Sample) -> list[Problem]:
        try:
            file = _find_file(path, step)
            if isinstance(file, Path) and not file.is_file():
                reason = '' if path == sample.path else f': it is the mask of {sample.path}'
                other = file.with_suffix(file.suffix.swapcase())
                beside = f'; there is {other.name}: rename it' if other.is_file() else ''
                return [Problem('missing', path, f'is not there{reason}{beside}')]
            if self.whole and file is not None and path == sample.path:
                content = file.read_bytes() if isinstance(file, Path) else file.getvalue()
                sample.digest = blake2b(content, digest_size=16).hexdigest()
            return [Problem(kind, path, message) for kind, message in look(step, path, file, info, sample)]
        except Exception as error:  # a decoder's, of any type
            return [Problem('unreadable', path, f'cannot be read: {in_one_line(error)}')]

    def _look_at_image(self, step: Load, path: str, file: File, info: dict, sample: Sample) -> Wrong:
        if isinstance(step, LoadBands):
            image = step.read(path)
            channels = image.shape[2]
            sample.mode, sample.size = f'with {channels} channels of {image.dtype}', image.shape[:2]
            sample.moments = moments_of(image.astype(np.float32)) if self.whole else None
            if self.num_channels not in (None, channels):
                yield 'mode', f'has {channels} channels, the backbone takes {self.num_channels}: set its in_channels'
            return
        if file is not None:
            fully = cv2.__version__ < '5'  # it fills up truncated images
            sample.mode, _, orientation = _read_header(path, file, fully)
            if getattr(step, 'color_type', 'color') in ('color', 'grayscale'):  # the others keep images as they are
                sample.orientation = orientation
            if sample.mode not in (*GOOD_MODES, *SIXTEEN_BIT):
                yield 'mode', f'is of mode {sample.mode}, which is no colour or grey of 8 or 16 bits: convert it'
                return
            # OpenCV scales 16 bits to 8, Pillow cuts everything above 255 off.
            if sample.mode in SIXTEEN_BIT and getattr(step, 'imdecode_backend', 'cv2') != 'cv2':
                yield 'mode', f"is of mode {sample.mode}: with 16 bits use imdecode_backend='cv2', or convert"
                return
        image = step(dict(img_path=path))['img']
        sample.size, sample.moments = image.shape[:2], moments_of(image) if self.whole else None

    def _look_at_video(self, step: LoadClips, path: str, file: File, info: dict, sample: Sample) -> Wrong:
        video = open_video(path, step.decoder)
        number = video.num_frames
        sample.num_frames, sample.fps = number, video.fps
        sample.size = video.size
        length = max(1, min(READ, READ_PIXELS // math.prod(video.size)))
        parts = [range(first, min(first + length, number)) for first in range(0, number, length)]
        for part in parts if self.whole else [[0, number - 1]]:
            video.read(part)
        step.check_length(number)
        yield from ()

    def _look_at_mask(self, step: Load, path: str, file: File, info: dict, sample: Sample) -> Wrong:
        mode, kind, _ = (MASK_MODES[0], None, 1) if file is None else _read_header(path, file)
        if mode not in MASK_MODES:
            sample.colours = _read_colours(file)
            yield 'mode', f'is of mode {mode}: a mask holds one 8-bit class number a pixel'
            return
        if kind == 'JPEG':
            yield 'mode', 'is a JPEG, whose compression changes labels: save masks as PNG'
            return
        labels = step(dict(info, seg_fields=[]))['gt_seg_map']
        if labels.ndim != 2:
            sample.colours = _read_colours(file)
            yield 'mode', "is read as colours by imdecode_backend='cv2': take 'pillow' for masks with a palette"
            return
        sample.counts = np.bincount(labels.ravel(), minlength=256)
        if mode == 'P':
            colours, shift = _read_palette(file), bool(info.get('reduce_zero_label'))
            present = (int(label) for label in np.flatnonzero(sample.counts) if label != self.ignore_index)
            sample.drawn = [(label, colours[label + shift]) for label in present if label + shift < len(colours)]
        if sample.size is not None and labels.shape != sample.size:
            own, image = ('x'.join(map(str, size)) for size in (labels.shape, sample.size))
            why = ''
            if sample.orientation > 1 and labels.shape == sample.size[::-1]:
                why = ', turned by its EXIF orientation: turn the mask too, or save the image upright without EXIF'
            yield 'size', f'has {own} pixels, its image {sample.path} has {image}{why}'
        elif sample.orientation > 1:  # where the turn changes the size, one that fits shows a turned mask
            sample.turned = labels.shape[0] == labels.shape[1] or sample.orientation in MIRRORED
        number, present = self.num_classes or 256, np.flatnonzero(sample.counts)
        outside = present[(present >= number) & (present != self.ignore_index)]
        if outside.size:
            allowed = f'0 to {number - 1}, and {self.ignore_index} for pixels to ignore'
            yield 'label', f'holds the label {outside[0]}, outside the {number} classes of {self.name} ({allowed})'


def moments_of(image: np.ndarray) -> np.ndarray:
    """Mean and standard deviation of each channel, two rows."""
    channels = np.moveaxis(np.atleast_3d(image), 2, 0)
    return np.stack([np.ravel(cv2.meanStdDev(np.ascontiguousarray(channel))) for channel in channels], axis=1)


def digest_of(image: np.ndarray) -> str:
    """A digest of an image's pixels, its shape and type included."""
    return blake2b(f'{image.shape}{image.dtype}'.encode() + image.tobytes(), digest_size=16).hexdigest()


def _find_file(path: str, step: BaseTransform) -> File:
    if path.startswith(f'{PREFIX}://'):
        return BytesIO(fileio.get(path))
    return None if '://' in path or getattr(step, 'backend_args', None) else Path(path)


def _read_header(path: str, file: Path | BytesIO, fully: bool = False) -> tuple[str, str | None, int]:
    """Mode and format of an image that is not too large, and its EXIF orientation; ``fully`` decodes the pixels."""
    check_image_size(file, path)
    with Image.open(file) as opened:
        tags = opened.getexif() if opened.info.get('exif') else {}
        found = opened.mode, opened.format, tags.get(ExifTags.Base.Orientation, 1)
        if fully:
            opened.load()
        return found


def _read_colours(file: Path | BytesIO) -> set[Colour] | set[int]:
    """The colours of an image, or its values if it has one channel; a few more than ``MOST_COLOURS`` at most."""
    with Image.open(file) as opened:
        if opened.mode[0] in 'IF':
            return {int(value) for value in np.unique(np.asarray(opened))[: MOST_COLOURS + 1]}
        colours = opened.convert('RGB').getcolors(opened.width * opened.height) or []
    return {colour for _, colour in colours[: MOST_COLOURS + 1]}


def _read_palette(file: Path | BytesIO) -> list[Colour]:
    """The colours of an image's palette; the pixels are not decoded."""
    with Image.open(file) as opened:
        order, content = opened.palette.getdata() if opened.palette else (None, b'')
    return [(*content[index : index + 3],) for index in range(0, len(content), 3)] if order == 'RGB' else []
