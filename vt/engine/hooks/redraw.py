"""Redraw random features during training."""

import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner

from vt.registry import HOOKS


@HOOKS.register_module()
class RedrawHook(Hook):
    """Call ``redraw(generator)`` of all parts that have it, with the same random numbers in every process.

    Args:
        interval: training iterations between calls (Performer, section 4.2: redrawing helps training).
    """

    def __init__(self, interval: int) -> None:
        self.interval = interval

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch=None, outputs=None) -> None:
        if not self.every_n_train_iters(runner, self.interval):
            return
        generator = torch.Generator().manual_seed(runner.iter)
        for part in runner.model.modules():
            if redraw := getattr(part, 'redraw', None):
                redraw(generator)
