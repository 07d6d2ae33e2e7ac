"""Steps of a pipeline, hooks and a preprocessor that fail, each in its own way."""

import multiprocessing
import time
from pathlib import Path

import numpy as np
from mmcv.transforms import BaseTransform
from mmengine.hooks import Hook
from mmengine.registry import HOOKS, MODELS, TRANSFORMS
from mmpretrain.models import ClsDataPreprocessor

from vt.errors import UserError


@TRANSFORMS.register_module()
class Wait(BaseTransform):
    """Make the file ``waits`` and go no further at the image of a name."""

    def __init__(self, at):
        self.at = at

    def transform(self, results):
        if results.get('img_path', '').endswith(self.at):
            Path('waits').touch()
            time.sleep(1000)
        return results


@MODELS.register_module()
class Failing(ClsDataPreprocessor):
    """Fail at every image."""

    def forward(self, data, training=False):
        raise RuntimeError('this preprocessor is of no use')


@HOOKS.register_module()
class StartAndFail(Hook):
    """Start a process as a loader starts a worker, and fail before the worker has signals of its own."""

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        multiprocessing.Process(target=time.sleep, args=(1000,), daemon=True).start()
        raise UserError('this is the end')


@HOOKS.register_module()
class FailAtStep(Hook):
    """Fail in the first step of training."""

    def after_train_iter(self, runner, **kwargs):
        raise RuntimeError('in the midst of it')


@TRANSFORMS.register_module()
class Spoil(BaseTransform):
    """Make the loss NaN where an image's name says so."""

    def transform(self, results):
        if 'spoilt' in results['img_path']:
            results['img'] = np.full_like(results['img'], np.nan, dtype=np.float32)
        return results
