"""Preprocessing of a user's images and videos, with the pipeline of a model's test set.

If the test set is in memory, without files, images are converted to its size and order of channels.
"""

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from itertools import groupby, islice
from multiprocessing.pool import ThreadPool
from typing import Any, TypeVar

import joblib
import mmcv
import numpy as np
import torch
from mmcv.transforms import LoadImageFromFile
from mmengine.config import Config
from mmengine.dataset import Compose, pseudo_collate
from mmengine.registry import DATASETS, TRANSFORMS
from mmengine.structures import BaseDataElement
from mmpretrain.datasets import CIFAR10
from torch import Tensor
from torch.nn.functional import pad

from vt.datasets.bands import LoadBands, as_rgb, why_unread
from vt.engine.config.parts import check_image_channels, preparation_of
from vt.engine.config.steps import choose_dtype
from vt.engine.hooks.visualization import visible
from vt.engine.reporting import describe, in_one_line
from vt.errors import MissingFileError, UserError
from vt.image_bounds import EXTENSIONS as IMAGES
from vt.image_bounds import check_frames
from vt.registry import build
from vt.video import LoadClips, open_video
from vt.video.dataset import EXTENSIONS as VIDEOS

from . import image_files

ImageSource = str | os.PathLike | np.ndarray
Given = TypeVar('Given')
Read = TypeVar('Read')
LOADING = (LoadImageFromFile, LoadClips)
PHOTO, CIFAR = (375, 500), (32, 32)  # height and width of an example image
MOST_WORKERS = 8  # each holds an image of its full size
MOST_VALUES = 64_000_000  # of a batch, and of what is read ahead: 256 MB in float32
MAX_THREADS = 256  # largest accepted number of threads
read_image = partial(image_files.read_image, explain=why_unread)


class Samples:
    """Samples without labels from a user's images or videos.

    For a test set of videos in memory, a clip has as many frames as there, spread evenly over the video.

    Args:
        cfg: config of the model. The files of its test set are not needed.

    Raises:
        UserError: the config has no test set, or one without a pipeline.
    """

    def __init__(self, cfg: Config) -> None:
        check_image_channels(cfg)
        self.prepared = preparation_of(cfg)
        if not self.prepared.steps:
            raise UserError('predictions require test_dataloader.dataset.pipeline in the config')
        steps = [build(TRANSFORMS, step, self.prepared.scope) for step in self.prepared.steps]
        self.load: Any = next((step for step in steps if isinstance(step, LOADING)), None)
        self.rest: Callable[[dict], Any] = Compose([step for step in steps if step is not self.load])
        self.num_bands = self.prepared.channels if isinstance(self.load, LoadBands) else None
        self.shape = () if self.load else self.input_shape  # of a test set in memory
        self.has_frames = isinstance(self.load, LoadClips) or len(self.shape) > 3
        self.suffixes = VIDEOS if self.has_frames else (*IMAGES, '.npy') if self.num_bands else IMAGES  # of files

    @cached_property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of the network's inputs: ``(C, H, W)`` of images, ``(3, T, H, W)`` of one clip.

        For a segmentor, which takes any size, it is the size of its training.
        """
        if self.prepared.shape:
            return self.prepared.shape
        own = {**self.prepared.dataset, 'lazy_init': True}
        dataset: Any = None if self.load else build(DATASETS, own, self.prepared.scope)
        size = PHOTO if self.load else CIFAR if isinstance(dataset, CIFAR10) else getattr(dataset, 'image_size', None)
        if size is None:
            dataset.full_init()  # the data set is in memory
            inputs = dataset[0]['inputs']
        else:
            size = (size, size) if isinstance(size, int) else size
            image = np.zeros((*size, self.num_bands or 3), np.float32 if self.num_bands else np.uint8)
            sample = dict(img=image, img_path='', img_shape=size, ori_shape=size)
            if isinstance(self.load, LoadClips):
                sample |= dict(frames=[image] * self.load.clip_length, num_views=1)
            inputs = self.rest(sample)['inputs']
        return tuple((inputs[0] if inputs.ndim == 5 else inputs).shape)

    def __call__(self, file: ImageSource) -> dict:
        """Return the sample of a file or of an image, or raise a UserError.

        An image is ``(height, width, 3)`` of uint8 in OpenCV's channel order; with ``vt.LoadBands`` in the config
        ``(height, width, channels)`` of any numeric type.
        """
        number, kinds = (self.num_bands, np.number) if self.num_bands else (3, np.uint8)
        is_array = isinstance(file, np.ndarray)
        if is_array and self.has_frames:
            raise UserError('the model requires videos: pass the path of a file, not an array')
        if is_array and (file.shape[2:] != (number,) or not np.issubdtype(file.dtype, kinds)):
            given = f'an image has shape {file.shape} and dtype {file.dtype}'
            raise UserError(f'{given}: pass (height, width, {number}) of {kinds.__name__}')
        try:
            return self.rest(self._fit(file, '') if is_array else self._read(str(file)))
        except Exception as error:  # of a decoder or a transform, of any type
            name = 'the image' if is_array else str(file)
            if isinstance(error, UserError) and name in str(error):
                raise
            raise UserError(f'{name} cannot be read: {describe(error) or in_one_line(error)}') from error

    def _read(self, path: str) -> dict:
        """Return what the first step of the pipeline gives for a file; may raise any error."""
        if not os.path.isfile(path):
            raise MissingFileError(f'there is no {"video" if self.has_frames else "image"} {path}')
        if self.has_frames and not self.load:
            length, *size = self.shape[1:]
            video = open_video(path)
            check_frames(video.size, length)
            frames = video.read(np.linspace(0, video.num_frames - 1, length).round().astype(int).tolist())
            resized = [mmcv.imresize(frame, size[::-1], interpolation='area') for frame in frames]
            return dict(img_path=path, frames=resized, img_shape=tuple(size), ori_shape=frames[0].shape[:2])
        if self.load is None:
            return self._fit(read_image(path), path)
        load = partial(self.load, dict(img_path=path))
        if self.has_frames:
            return load()
        results = load() if self.num_bands else image_files.load_image(path, load, why_unread)  # bands check theirs
        if self.num_bands and (number := results['img'].shape[2]) != self.num_bands:
            raise UserError(f'{path} has {number} channels, but the model requires {self.num_bands}')
        return results

    def _fit(self, image: np.ndarray, path: str) -> dict:
        """Return an image as the first step gives one, at the size and in the order of channels of a set in memory."""
        original = image.shape[:2]
        image = image.astype(np.float32) if self.num_bands else image
        if self.shape:
            resized: Any = mmcv.imresize(image, self.shape[:-3:-1], interpolation='area')
            image = resized if self.prepared.is_bgr else np.ascontiguousarray(resized[..., ::-1])
        return dict(img=image, img_path=path, img_shape=image.shape[:2], ori_shape=original)


class SampleInferencer:
    """Base class of the inferencers: batches of samples, their predictions, and inputs as RGB images."""

    model: Any  # a network of MMPretrain or MMSegmentation
    pipeline: Samples
    predicts_maps = False
    preprocess_kwargs = {'workers'}  # arguments of a call that are passed on to preprocess

    def __call__(
        self,
        inputs: ImageSource | Sequence[ImageSource],
        return_datasamples: bool = False,
        batch_size: int = 1,
        **options: Any,
    ) -> Any:
        """Return the results of images, or of the files in a folder, one per image; errors are UserErrors.

        A single image without options skips the library's progress bar, which starts and ends a thread.

        Args:
            inputs: a file, a folder, an image, or a list of files and images; see :meth:`preprocess`.
            return_datasamples: return predictions as elements of data.
            batch_size: as in :meth:`preprocess`.
            **options: those of the library's inferencer, and ``workers`` of :meth:`preprocess`.
        """
        if batch_size < 1:
            raise UserError(f'batch_size={batch_size} must be at least 1')
        inputs = os.fspath(inputs) if isinstance(inputs, os.PathLike) else inputs
        is_folder = isinstance(inputs, str) and os.path.isdir(inputs)
        if is_folder and all(entry.is_dir() for entry in os.scandir(inputs)):
            raise UserError(f'{inputs} contains no file')
        if options or is_folder or isinstance(inputs, (list, tuple)):
            return super().__call__(inputs, return_datasamples, batch_size, **options)
        (batch,) = self.preprocess([inputs])
        return self.postprocess(self.forward(batch), None, return_datasamples)

    def forward(self, inputs: Any, **options: Any) -> list[BaseDataElement]:
        """Return the predictions of a batch, in mixed precision with ``test_cfg.fp16`` in the config."""
        with predicting(self.model.cfg, next(self.model.parameters()).device.type):
            return super().forward(inputs, **options)

    def preprocess(
        self, inputs: Sequence[ImageSource], batch_size: int = 1, workers: int | None = None
    ) -> Iterator[dict]:
        """Yield batches for the model, or raise a UserError if an input cannot be read.

        Args:
            inputs: files, or images ``(height, width, 3)`` of uint8 in OpenCV's channel order.
            batch_size: largest number of images per batch; a batch has images of one size.
            workers: number of threads that read ahead; None for :func:`default_workers`, or 0 for one input.
        """
        workers = default_workers() if workers is None and len(inputs) > 1 else workers or 0
        samples = read_ahead(self.pipeline, inputs, workers, batch_size)
        for batch in in_batches(zip(inputs, samples), batch_size):
            yield pseudo_collate([sample for _, sample in batch])

    def pixels(self, source: ImageSource) -> np.ndarray:
        """Return an input as an RGB image ``(height, width, 3)`` of uint8, at its own size."""
        if self.pipeline.num_bands:
            return as_rgb(source if isinstance(source, np.ndarray) else self.pipeline.load.read(str(source)))
        image = source if isinstance(source, np.ndarray) else read_image(source)
        return np.ascontiguousarray(image[..., ::-1])


def predicting(cfg: Config, device: str) -> AbstractContextManager:
    """Return the context of an inferencer's forward pass: mixed precision with ``test_cfg.fp16``, as in tests."""
    dtype = 'bfloat16' if device == 'cpu' else choose_dtype(cfg.get('optim_wrapper') or {})
    half = bool((cfg.get('test_cfg') or {}).get('fp16'))
    return torch.autocast(device, getattr(torch, dtype)) if half else nullcontext()  # which leaves a user's as it is


def in_batches(samples: Iterable[tuple[Given, Any]], batch_size: int) -> Iterator[list[tuple[Given, Any]]]:
    """Yield lists of inputs with their samples, in order, at most ``batch_size`` of one size, fewer if they are large.

    An error instead of a sample is alone in its list.
    """
    for shape, alike in groupby(samples, lambda pair: isinstance(pair[1], dict) and pair[1]['inputs'].shape):
        number = min(batch_size, max(1, MOST_VALUES // math.prod(shape))) if shape else 1
        while batch := [*islice(alike, number)]:
            yield batch


def default_workers() -> int:
    """Return the number of threads that read images: one per four available cores, at most ``MOST_WORKERS``.

    With fewer cores, reading ahead takes as much time from the network as it saves.
    """
    return min(joblib.cpu_count() // 4, MOST_WORKERS)


def read_ahead(
    read: Callable[[Given], Read], sources: Iterable[Given], workers: int, batch_size: int
) -> Iterator[Read]:
    """Yield ``read(source)`` in order; threads read the next batch ahead, fewer samples if they are large.

    Without ``workers`` nothing is read ahead.
    """
    if not workers:
        yield from map(read, sources)
        return
    with ThreadPool(workers) as pool:  # its threads are daemons, which do not keep the process from ending
        waiting, most = deque(), 1
        for source in sources:
            waiting.append(pool.apply_async(read, (source,)))
            while len(waiting) > most:
                found = waiting.popleft().get()
                numbers = math.prod(found['inputs'].shape) if isinstance(found, dict) else 1
                most = min(batch_size + workers, max(1, MOST_VALUES // numbers))
                yield found
        while waiting:
            yield waiting.popleft().get()


def model_input(model: Any, sample: dict, is_bgr: bool) -> tuple[Tensor, Tensor]:
    """Return a sample as the network sees it, RGB in 0 to 1, and the network's input, ``(1, 3, ...)``.

    An image is padded, ``(3, height, width)``; a video gives the frames of its first clip, ``(T, 3, height, width)``.
    """
    batch = pseudo_collate([sample])
    given = batch['inputs'][0]
    if given.ndim > 3:
        clip = (given[0] if given.ndim == 5 else given).float() / 255  # 3, T, height, width
        frames = (clip.flip(0) if is_bgr else clip).transpose(0, 1)
        return frames, model.data_preprocessor(batch, False)['inputs'][:1]
    image = torch.from_numpy(np.ascontiguousarray(visible(given, is_bgr))).permute(2, 0, 1).float() / 255
    inputs = model.data_preprocessor(batch, False)['inputs']
    bottom, right = inputs.shape[-2] - image.shape[-2], inputs.shape[-1] - image.shape[-1]
    return pad(image, (0, right, 0, bottom)), inputs
