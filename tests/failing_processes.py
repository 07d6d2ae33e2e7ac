"""Processes that fail: by a hook for a test's config, in an iteration of the first start."""

import os
import signal

from mmengine.hooks import Hook
from mmengine.registry import HOOKS

from vt.errors import UserError


@HOOKS.register_module()
class Fail(Hook):
    """``how`` is the name of a signal that the process sends to itself, or the text of an error."""

    def __init__(self, rank, iteration, how):
        self.rank, self.iteration, self.how = rank, iteration, how

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        started_again = int(os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)) > 0
        if (runner.rank, runner.iter) != (self.rank, self.iteration) or started_again:
            return
        if self.how.startswith('SIG'):
            os.kill(os.getpid(), signal.Signals[self.how])
        raise UserError(self.how)
