"""Processes that fail: by a hook for a test's config, in an iteration of the first start; and one after the other."""

import os
import signal

from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from torch import distributed

from vt.engine.reporting import follows_another
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


def fail_in_turn(rank):
    """What each process learns about its errors; the main one fails first."""
    if rank == 1:
        distributed.barrier()
        answers = [follows_another(RuntimeError()), follows_another(ValueError())]
    else:
        answers = [follows_another(RuntimeError())]
        distributed.barrier()
    distributed.barrier()
    return answers
