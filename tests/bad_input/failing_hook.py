"""A hook that starts a process as a loader starts a worker, and fails before the worker has signals of its own."""

import multiprocessing
import time

from mmengine.hooks import Hook
from mmengine.registry import HOOKS

from vt.errors import UserError


@HOOKS.register_module()
class StartAndFail(Hook):
    def before_train_iter(self, runner, batch_idx, data_batch=None):
        multiprocessing.Process(target=time.sleep, args=(1000,), daemon=True).start()
        raise UserError('this is the end')


@HOOKS.register_module()
class FailAtStep(Hook):
    """Fail in the first step of training."""

    def after_train_iter(self, runner, **kwargs):
        raise RuntimeError('in the midst of it')
