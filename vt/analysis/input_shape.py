"""What a model is given of one sample, told from its config alone: the data needn't be here."""

import numpy as np
from mmcv.transforms import BaseTransform, LoadAnnotations, LoadImageFromFile
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.registry import TRANSFORMS
from mmpretrain.datasets import CIFAR10

from vt.engine.config_files import leaves
from vt.engine.counting import one_input
from vt.errors import UserError
from vt.video import LoadClips

from .attention.model_and_images import build_test_set

LOADING = (LoadImageFromFile, LoadClips)
PICTURE, CIFAR = (375, 500), (32, 32)  # height and width of an empty picture


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
    dataset = next(iter(leaves((cfg.get('test_dataloader') or {}).get('dataset'))), {})
    if not dataset.get('pipeline'):
        raise UserError('the config has no test_dataloader with a pipeline to put pictures through')
    steps = [TRANSFORMS.build(step) for step in dataset.pipeline]
    return [step for step in steps if not isinstance(step, LoadAnnotations)]
