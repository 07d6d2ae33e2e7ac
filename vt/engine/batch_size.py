"""Find the largest batch size for training that fits in memory."""

import gc
import resource
import time
from collections.abc import Callable

import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner

from vt.errors import UserError

from .checks.rehearsal import rehearsed_batches

PRECISION = 1 / 16  # relative precision of the result
OF_A_CPU = ("can't allocate memory", 'bad_alloc', 'could not create')  # out-of-memory errors of PyTorch and oneDNN


class BatchSizeHook(Hook):
    """Find the largest batch size before a run by taking training steps, then end the run.

    Each size is tried for as many steps as one update of the weights takes, and for at least two, since the first step
    creates the optimizer's state.

    Attributes:
        trials: one row per size: batch size, memory, images per second or the problem.
        largest: the result.

    Raises:
        UserError: no size fits, or memory has no limit.
    """

    priority = 'LOWEST'

    def before_train(self, runner: Runner) -> None:
        """Try sizes from the config's batch size up to the number of training images."""
        if not torch.cuda.is_available() and resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
            raise UserError(
                '--find-batch-size needs a memory limit: use a GPU, or on a CPU set one with ulimit -v KILOBYTES'
            )
        self.trials: list[dict[str, str]] = []
        loader = runner.train_dataloader
        self.largest = largest(lambda size: self._fits(runner, size), loader.batch_size or 1, len(loader.dataset))
        runner.train_loop.stop_training = True

    def _fits(self, runner: Runner, size: int) -> bool:
        on_gpu, problem = torch.cuda.is_available(), ''
        if on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        try:
            seconds = _train(runner, size)
        except (torch.OutOfMemoryError, MemoryError):
            problem = 'out of memory'
        except RuntimeError as error:
            if not any(words in str(error) for words in OF_A_CPU):
                raise
            problem = 'out of memory'
        runner.optim_wrapper.zero_grad()
        gc.collect()  # frees tensors that the frames of an error referred to
        peak = torch.cuda.max_memory_allocated() if on_gpu else 0
        row = {'batch': str(size), 'memory (GiB)': f'{peak / 2**30:.1f}' if on_gpu and not problem else ''}
        self.trials.append(row | {'images/s': problem or f'{size / seconds:.4g}'})
        return not problem


def _train(runner: Runner, size: int) -> float:
    """Take training steps with a batch size; return the seconds of the last step."""
    steps = max(2, (runner.cfg.optim_wrapper or {}).get('accumulative_counts', 1))
    runner.model.train()
    for _ in range(steps):
        _, batch = next(rehearsed_batches(runner.train_dataloader, size))
        begin = time.perf_counter()
        runner.model.train_step(batch, runner.optim_wrapper)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    return time.perf_counter() - begin


def largest(fits: Callable[[int], bool], first: int, most: int) -> int:
    """Return the largest size that fits, within 1/16: double from ``first``, then bisect.

    Args:
        fits: whether a size fits.
        first: size to start from.
        most: largest size to try.

    Raises:
        UserError: a batch of one does not fit.
    """
    low, high, size = 0, most + 1, min(first, most)  # low fits, high does not
    while True:
        low, high = (size, high) if fits(size) else (low, size)
        if high - low <= max(1, low * PRECISION):
            break
        size = 2 * low if 0 < 2 * low < high else (low + high) // 2
    if not low:
        raise UserError('a batch of one image does not fit: use a smaller model or image size, --amp or with_cp=True')
    return low
