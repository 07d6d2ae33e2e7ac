"""What is wrong with an image and its mask, or with a video, read as the pipeline reads them."""

import math
from dataclasses import dataclass, field
from hashlib import blake2b
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
from mmcv.transforms import BaseTransform
from mmengine import fileio
from PIL import Image

from vt.datasets.rows import PREFIX
from vt.engine.errors import in_one_line
from vt.image_bounds import check_picture_size
from vt.video.clips import LoadClips
from vt.video.decoders import open_video

# Modes, as Pillow names them, that every decoder turns into the right colours.
GOOD_MODES = ('1', 'L', 'LA', 'P', 'PA', 'RGB', 'RGBA', 'RGBX', 'CMYK', 'YCbCr')
SIXTEEN_BIT = ('I;16', 'I;16B', 'I;16L', 'I;16N')
MASK_MODES = ('1', 'L', 'P')
READ, READ_PIXELS = 32, 128_000_000  # held at a time: so many frames, if they have no more pixels


@dataclass(frozen=True)
class Problem:
    """Something wrong with a file.

    Attributes:
        kind: ``'missing'``, ``'unreadable'``, ``'mode'``, ``'size'``, ``'label'``, ``'annotation'``, ``'empty'``,
            ``'classes'``, ``'duplicate'`` or ``'not read'``.
        file: its path.
        message: what is wrong; a predicate of the file.
        line: of a text file.
    """

    kind: str
    file: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = self.file if self.line is None else f'{self.file}, line {self.line}'
        return f'{where} {self.message}'


@dataclass
class Sample:
    """What was seen of a sample.

    Attributes:
        problems: what is wrong with it.
        mode: of the image, as Pillow names it.
        size: height and width of the image, or of a video's frames.
        counts: how often each label occurs in the mask, 256 numbers.
        digest: of the file's bytes.
        num_frames: of a video.
        fps: frames a second of a video.
    """

    problems: list[Problem] = field(default_factory=list)
    mode: str | None = None
    size: tuple[int, int] | None = None
    counts: np.ndarray | None = None
    digest: str | None = None
    num_frames: int | None = None
    fps: float | None = None


@dataclass(frozen=True)
class SampleCheck:
    """A check of the samples of one data set.

    Args:
        load_image: the pipeline's step that loads an image; None for images that are not files.
        load_mask: its step that loads a mask; None where there are no masks.
        num_classes: labels are below it; None where it is not known.
        ignore_index: a label that is allowed all the same.
        name: of the data set.
        with_digest: note a digest of each image, to find it elsewhere.
    """

    load_image: BaseTransform | None
    load_mask: BaseTransform | None
    num_classes: int | None
    ignore_index: int
    name: str
    with_digest: bool = False

    @property
    def reads_files(self) -> bool:
        """Whether there is something to read; a data set can be made in memory."""
        return self.load_image is not None or self.load_mask is not None

    @property
    def before_run(self) -> bool:
        """Whether some samples are read before a run."""
        return self.load_mask is not None

    def __call__(self, info: dict) -> Sample:
        """Look at one sample, given what the data set says about it."""
        sample = Sample()
        if self.load_image is not None:
            self._look_at_image(info, sample)
        if self.load_mask is not None and info.get('seg_map_path'):
            self._look_at_mask(info, sample)
        elif (problem := _wrong_label(info, self.num_classes, self.name)) is not None:
            sample.problems.append(problem)
        return sample

    def _look_at_image(self, info: dict, sample: Sample) -> None:
        path = info['img_path']
        try:
            if (source := _source(path, self.load_image)) is not None:
                self._look_at_file(path, source, sample)
            if not sample.problems:
                sample.size = self.load_image(dict(img_path=path))['img_shape'][:2]
        except Exception as error:  # a decoder's, of any type
            sample.problems.append(Problem('unreadable', path, f'cannot be read: {in_one_line(error)}'))

    def _look_at_file(self, path: str, source: Path | BytesIO, sample: Sample) -> None:
        """What shows of an image without the pipeline's own reader."""
        if _is_missing(source):
            sample.problems.append(Problem('missing', path, 'is not there'))
            return
        if self.with_digest:
            content = source.read_bytes() if isinstance(source, Path) else source.getvalue()
            sample.digest = blake2b(content, digest_size=16).hexdigest()
        check_picture_size(source, path)
        with Image.open(source) as opened:
            sample.mode = opened.mode
            if cv2.__version__ < '5':  # it fills up truncated images without a word
                opened.load()
        wrong = self._wrong_mode(sample.mode)
        if wrong:
            sample.problems.append(Problem('mode', path, wrong))

    def _wrong_mode(self, mode: str) -> str | None:
        if mode in GOOD_MODES:
            return None
        backend = getattr(self.load_image, 'imdecode_backend', 'cv2')
        if mode in SIXTEEN_BIT:
            # OpenCV scales 16 bits to 8, Pillow cuts everything above 255 off.
            return (
                None if backend == 'cv2' else f"is of mode {mode}: with 16 bits use imdecode_backend='cv2', or convert"
            )
        return f'is of mode {mode}, which is no colour or grey of 8 or 16 bits: convert it'

    def _look_at_mask(self, info: dict, sample: Sample) -> None:
        mask = info['seg_map_path']
        try:
            source = _source(mask, self.load_mask)
            problem = None if source is None else self._wrong_mask(mask, source, info['img_path'])
            labels = None if problem else self.load_mask(dict(info, seg_fields=[]))['gt_seg_map']
        except Exception as error:
            problem = Problem('unreadable', mask, f'cannot be read: {in_one_line(error)}')
        if problem is None and labels.ndim != 2:
            message = "is read as colours by imdecode_backend='cv2': take 'pillow' for masks with a palette"
            problem = Problem('mode', mask, message)
        if problem is not None:
            sample.problems.append(problem)
        else:
            self._compare(labels, info['img_path'], mask, sample)

    @staticmethod
    def _wrong_mask(mask: str, source: Path | BytesIO, image: str) -> Problem | None:
        if _is_missing(source):
            return Problem('missing', mask, f'is not there: it is the mask of {image}')
        check_picture_size(source, mask)
        with Image.open(source) as opened:
            if opened.mode not in MASK_MODES:
                message = f'is of mode {opened.mode}: a mask holds one 8-bit class number a pixel'
                return Problem('mode', mask, message)
        return None

    def _compare(self, labels: np.ndarray, image: str, mask: str, sample: Sample) -> None:
        sample.counts = np.bincount(labels.ravel(), minlength=256)
        if sample.size is not None and labels.shape != sample.size:
            height, width = sample.size
            message = f'has {labels.shape[0]}x{labels.shape[1]} pixels, its image {image} has {height}x{width}'
            sample.problems.append(Problem('size', mask, message))
        present = np.flatnonzero(sample.counts)
        outside = present[(present >= (self.num_classes or 256)) & (present != self.ignore_index)]
        if outside.size:
            message = (
                f'holds the label {outside[0]}, outside the {self.num_classes} classes of {self.name} '
                f'(0 to {self.num_classes - 1}, and {self.ignore_index} for pixels to ignore)'
            )
            sample.problems.append(Problem('label', mask, message))


@dataclass(frozen=True)
class VideoCheck:
    """A check of the videos of one data set.

    Args:
        load_clips: the pipeline's step that reads them.
        num_classes: labels are below it; None where it is not known.
        name: of the data set.
        whole: decode every frame, and note a digest of each file; otherwise the first and the last frame alone.
    """

    load_clips: LoadClips
    num_classes: int | None
    name: str
    whole: bool = False
    reads_files: bool = True
    before_run: bool = True

    def __call__(self, info: dict) -> Sample:
        """Look at one sample, given what the data set says about it."""
        sample, path = Sample(), info['img_path']
        problem = _wrong_label(info, self.num_classes, self.name)
        if problem is not None:
            sample.problems.append(problem)
        if not Path(path).is_file():
            sample.problems.append(Problem('missing', path, 'is not there'))
            return sample
        try:
            self._look_at_frames(path, sample)
        except Exception as error:  # a decoder's, of any type
            sample.problems.append(Problem('unreadable', path, f'cannot be read: {in_one_line(error)}'))
        return sample

    def _look_at_frames(self, path: str, sample: Sample) -> None:
        video = open_video(path, self.load_clips.decoder)
        number = video.num_frames
        sample.size, sample.num_frames, sample.fps = video.size, number, video.fps
        if self.whole:
            sample.digest = blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()
            step = max(1, min(READ, READ_PIXELS // math.prod(video.size)))
            for first in range(0, number, step):
                video.read(range(first, min(first + step, number)))
        else:
            video.read([0, number - 1])
        self.load_clips.check_length(number)


def _wrong_label(info: dict, num_classes: int | None, name: str) -> Problem | None:
    """What is wrong with the label of a sample of a data set of a name, if it has one."""
    label = info.get('gt_label')
    if num_classes is None or not isinstance(label, (int, np.integer)) or 0 <= label < num_classes:
        return None
    return Problem(
        'label', str(info.get('img_path')), f'has the label {label}, outside the {num_classes} classes of {name}'
    )


def _source(path: str, step: BaseTransform) -> Path | BytesIO | None:
    """A file of this machine, or what a row of a data set holds; None where a client of a remote store reads it."""
    if path.startswith(f'{PREFIX}://'):
        return BytesIO(fileio.get(path))
    return None if '://' in path or getattr(step, 'backend_args', None) else Path(path)


def _is_missing(source: Path | BytesIO) -> bool:
    return isinstance(source, Path) and not source.is_file()
