"""Batch sizes: the largest for training that fits in the memory of a GPU, and what they leave out of small data."""

import time
from typing import Any

import torch
from mmengine.dataset import InfiniteSampler
from mmengine.dist import get_world_size
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch.utils.data import DataLoader

from vt.engine.hooks.dry_run import dry_run_batches
from vt.errors import UserError

MOST_LEFT_OUT = 0.1  # share of the samples that the last, incomplete batch of an epoch may have without a warning


def find_left_out_samples(loader: DataLoader) -> str | None:
    """Return a warning if ``drop_last`` leaves out more than a tenth of the samples of each epoch; None if not.

    Raises:
        UserError: an epoch has no batch.
    """
    sampler, size = getattr(loader.sampler, 'sampler', loader.sampler), loader.batch_size
    if not (loader.drop_last and size) or isinstance(sampler, InfiniteSampler):
        return None
    number, setting = len(loader.sampler), f'train_dataloader.batch_size={size}'
    fitting = [each for each in range(1, min(size, number) + 1) if number % each <= MOST_LEFT_OUT * number]
    processes = f' for each of {get_world_size()} processes' if get_world_size() > 1 else ''
    if number < size:
        lower = f'lower it to {fitting[-1]} or less' if number else 'correct the data'
        raise UserError(f'an epoch has no batch: {setting}, but {number} training samples{processes}; {lower}')
    if size in fitting:
        return None
    words = f'each epoch leaves out {number % size} of {number} training samples{processes}: {setting}, drop_last=True'
    return f'{words}; batches of {fitting[-1]} leave out {number % fitting[-1]}, drop_last=False none'


class BatchSizeHook(Hook):
    """Double the batch size before a run until a training step runs out of memory, then end the run.

    Each size is tried for as many steps as one update of the weights takes, and for at least two, since the first step
    creates the optimizer's state.

    Attributes:
        trials: one row per size: batch size, memory, images per second or the problem.
        largest: the result, at most the number of training images.

    Raises:
        UserError: there is no GPU, or the config's batch size does not fit.
    """

    priority = 'LOWEST'

    def before_train(self, runner: Runner) -> None:
        if not torch.cuda.is_available():
            raise UserError('--find-batch-size needs a GPU')
        self.trials: list[dict[str, str]] = []
        self.largest, size = 0, runner.train_dataloader.batch_size or 1
        images = len(runner.train_dataloader.dataset)
        while self.largest < images and self._fits(runner, min(size, images)):
            self.largest, size = min(size, images), 2 * size
        if not self.largest:
            raise UserError(f'batches of {size} images do not fit: lower train_dataloader.batch_size, or add --amp')
        runner.train_loop.stop_training = True

    def _fits(self, runner: Any, size: int) -> bool:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        trial = {'batch': str(size), 'memory (GiB)': '', 'images/s': 'out of memory'}
        self.trials.append(trial)
        runner.model.train()
        try:
            for _ in range(max(2, (runner.cfg.optim_wrapper or {}).get('accumulative_counts', 1))):
                _, batch = next(dry_run_batches(runner.train_dataloader, size))
                begin = time.perf_counter()
                runner.model.train_step(batch, runner.optim_wrapper)
                torch.cuda.synchronize()
            trial['images/s'] = f'{size / (time.perf_counter() - begin):.4g}'
            trial['memory (GiB)'] = f'{torch.cuda.max_memory_allocated() / 2**30:.1f}'
        except (torch.OutOfMemoryError, MemoryError):
            return False
        finally:
            runner.optim_wrapper.zero_grad()
        return True
