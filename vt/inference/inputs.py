"""Pictures and videos of a user's own on their way into a model: through the pipeline of its test set.

Where the test set's own images are no files but in memory, a picture takes the size that the network sees of them, and
their order of channels.
"""

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import cv2
import mmcv
import numpy as np
from mmcv.transforms import BaseTransform, LoadAnnotations, LoadImageFromFile
from mmengine.config import Config
from mmengine.dataset import Compose, pseudo_collate
from mmengine.registry import TRANSFORMS
from mmpretrain.datasets import CIFAR10
from torch import Tensor, nn
from torch.nn.functional import pad

from vt.engine.config_files import leaves
from vt.engine.counting import one_input
from vt.engine.errors import describe, in_one_line
from vt.engine.picture_hooks import reads_bgr
from vt.errors import MissingFileError, UserError
from vt.image_bounds import check_frames, check_picture_size
from vt.video import LoadClips, open_video

from .test_set import build_test_set, in_scope

LOADING = (LoadImageFromFile, LoadClips)
PICTURE, CIFAR = (375, 500), (32, 32)  # height and width of an empty picture


def naming_file(make_sample: Callable[[Any, Any], dict]) -> Callable[[Any, Any], dict]:
    """A method that makes a sample of a file, whose every error is a UserError that names it."""

    @wraps(make_sample)
    def named(self: Any, file: str | Path | np.ndarray) -> dict:
        try:
            return make_sample(self, file)
        except Exception as error:  # a decoder's or a transform's, of any type
            name = 'the image' if isinstance(file, np.ndarray) else str(file)
            if isinstance(error, UserError) and name in str(error):
                raise
            raise UserError(f'{name} cannot be read: {describe(error) or in_one_line(error)}') from error

    return named


class Pictures:
    """Make samples without labels of pictures of any size.

    Args:
        cfg: of the model. Its test set's files needn't be here.

    Raises:
        UserError: the config has no test set, or one without a pipeline of its own.
    """

    def __init__(self, cfg: Config) -> None:
        steps = pipeline_steps(cfg)
        self.load = next((step for step in steps if isinstance(step, LoadImageFromFile)), None)
        self.rest = Compose([step for step in steps if step is not self.load])
        self.size = None if self.load else input_shape(cfg)[-2:]
        self.is_bgr = reads_bgr(cfg)

    @naming_file
    def __call__(self, picture: str | Path | np.ndarray) -> dict:
        """A sample of a file, or of an image ``(height, width, 3)`` uint8 in OpenCV's order of channels.

        Raises:
            MissingFileError: there is no such file.
            UserError: it is no picture, or one that is damaged.
        """
        image = picture if isinstance(picture, np.ndarray) else read_picture(picture)
        path = '' if isinstance(picture, np.ndarray) else str(picture)
        original = image.shape[:2]
        if self.size:
            image = mmcv.imresize(image, self.size[::-1], interpolation='area')
            image = image if self.is_bgr else np.ascontiguousarray(image[..., ::-1])
        elif path:
            return self.rest(self.load(dict(img_path=path)))
        return self.rest(dict(img=image, img_path=path, img_shape=image.shape[:2], ori_shape=original))


class Videos:
    """Make samples without labels of video files; arguments and errors as of :class:`Pictures`.

    Where the test set is made in memory a clip is that many frames, spread evenly over the video.
    """

    def __init__(self, cfg: Config) -> None:
        steps = pipeline_steps(cfg)
        self.steps = Compose(steps)
        self.shape = None if any(isinstance(step, LoadClips) for step in steps) else input_shape(cfg)[1:]

    @naming_file
    def __call__(self, video: str | Path) -> dict:
        """A sample of a video file.

        Raises:
            MissingFileError: there is no such file.
            UserError: it is no video, or one that is damaged.
        """
        if not os.path.isfile(video):
            raise MissingFileError(f'there is no video {video}')
        return self.steps(dict(img_path=str(video)) if self.shape is None else self._spread(str(video)))

    def _spread(self, path: str) -> dict:
        length, height, width = self.shape
        video = open_video(path)
        check_frames(video.size, length)
        frames = video.read(np.linspace(0, video.num_frames - 1, length).round().astype(int).tolist())
        sizes = dict(img_shape=(height, width), ori_shape=frames[0].shape[:2])
        frames = [mmcv.imresize(frame, (width, height), interpolation='area') for frame in frames]
        return dict(img_path=path, frames=frames, **sizes)


def read_picture(path: str | Path) -> np.ndarray:
    """A picture, ``(height, width, 3)`` uint8, in OpenCV's order of channels.

    Raises:
        MissingFileError: there is no such file.
        UserError: it is no picture, one that is damaged, or too large.
    """
    if not os.path.isfile(path):
        raise MissingFileError(f'there is no picture {path}')
    image = None
    if check_picture_size(path):
        try:
            image = mmcv.imfrombytes(Path(path).read_bytes(), backend='cv2')
        except cv2.error as error:
            raise UserError(f'{path} is no picture that can be read: {in_one_line(error)}') from error
    if image is None:
        raise UserError(f'{path} is no picture that can be read')
    return image


def input_shape(cfg: Config) -> tuple[int, ...]:
    """``(3, H, W)`` of an image, or ``(3, T, H, W)`` of one clip.

    It is what the test pipeline makes of a picture or video. A segmentor takes any size: it is that of its training.

    Raises:
        UserError: the config has no test set, or one whose pipeline can't be told.
    """
    if 'input_shape' in cfg:  # a saved model says it
        return tuple(cfg.input_shape)
    preprocessor = cfg.model.get('data_preprocessor') or {}
    if preprocessor.get('size'):
        return 3, *preprocessor['size']
    steps = pipeline_steps(cfg)
    rest = Compose([step for step in steps if not isinstance(step, LOADING)])
    loader = next((step for step in steps if isinstance(step, LOADING)), None)
    dataset = None if loader else build_test_set(cfg, lazy_init=True)
    if dataset is not None and not isinstance(dataset, CIFAR10):
        dataset.full_init()  # it is made in memory
        return tuple(one_input(dataset).shape)
    size = PICTURE if loader else CIFAR
    image = np.zeros((*size, 3), np.uint8)
    sample = dict(img=image, img_path='', img_shape=size, ori_shape=size)
    if isinstance(loader, LoadClips):
        sample |= dict(frames=[image] * loader.clip_length, num_views=1)
    inputs = rest(sample)['inputs']
    return tuple((inputs[0] if inputs.ndim == 5 else inputs).shape)


def pipeline_steps(cfg: Config) -> list[BaseTransform]:
    """The steps of a config's test pipeline, but for those that load labels; the data needn't be here.

    Raises:
        UserError: it has none.
    """
    with in_scope(cfg):
        steps = [TRANSFORMS.build(step) for step in pipeline_of(cfg)]
    return [step for step in steps if not isinstance(step, LoadAnnotations)]


def pipeline_of(cfg: Config) -> list[dict]:
    """A config's test pipeline as it says it.

    Raises:
        UserError: it has none.
    """
    dataset = next(iter(leaves((cfg.get('test_dataloader') or {}).get('dataset'))), {})
    if not dataset.get('pipeline'):
        raise UserError('the config has no test_dataloader with a pipeline to put pictures through')
    return dataset['pipeline']


def seen_by(model: nn.Module, sample: dict, is_bgr: bool) -> tuple[Tensor, Tensor]:
    """A sample's padded image, RGB in 0 to 1, ``(3, height, width)``, and what the network gets, ``(1, 3, ...)``."""
    batch = pseudo_collate([sample])
    image = batch['inputs'][0].float() / 255  # 3, height, width
    inputs = model.data_preprocessor(batch, False)['inputs']
    bottom, right = inputs.shape[-2] - image.shape[-2], inputs.shape[-1] - image.shape[-1]
    return pad(image.flip(0) if is_bgr else image, (0, right, 0, bottom)), inputs
