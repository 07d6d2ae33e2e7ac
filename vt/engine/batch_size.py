"""Find the largest batch size for training that fits in the memory of a GPU."""

import time

import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner

from vt.errors import UserError

from .checks.rehearsal import rehearsed_batches


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

    def _fits(self, runner: Runner, size: int) -> bool:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        trial = {'batch': str(size), 'memory (GiB)': '', 'images/s': 'out of memory'}
        self.trials.append(trial)
        runner.model.train()
        try:
            for _ in range(max(2, (runner.cfg.optim_wrapper or {}).get('accumulative_counts', 1))):
                _, batch = next(rehearsed_batches(runner.train_dataloader, size))
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
