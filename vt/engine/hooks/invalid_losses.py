"""Handle losses that are not finite: warn, write no checkpoint, and stop the run if it continues."""

import math
from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from vt.checkpoints.reading import find_newest_checkpoint
from vt.checkpoints.weights import unwrap
from vt.engine.run.processes import any_process
from vt.errors import UserError
from vt.registry import HOOKS

NAMED_FILES = 8  # files of a batch that the error names; the log names all
RUNNING_STATISTICS = ('running_mean', 'running_var')  # other buffers, such as masks, may contain infinities on purpose


class NotFiniteError(UserError, FloatingPointError):
    """The loss has been NaN or infinite for several iterations."""


@HOOKS.register_module()
class FiniteLossHook(Hook):
    """Warn if the loss is NaN or infinite, and stop the run after several such iterations in a row.

    The hook uses the loss that mmengine has read for its log, so a GPU does not wait for it. With several processes
    each counts its own: the gradients of one reach the weights of all. Checkpoints use :func:`why_not_save`.

    Args:
        patience: number of iterations in a row that stop the run. With a dynamic loss scale a forward pass in float16
            may overflow for one or two batches and recover. Without one, a NaN reaches the weights in one step and
            remains.

    Raises:
        NotFiniteError: the loss has not been finite for ``patience`` iterations.
    """

    def __init__(self, patience: int = 3) -> None:
        self.patience = patience
        self.in_row = 0
        self._first_files: list[str] = []

    def after_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        logged = runner.message_hub.log_scalars.get('train/loss')  # missing without a logger hook
        loss = float((outputs or {}).get('loss', 0.0) if logged is None else logged.current())
        if math.isfinite(loss):
            self.in_row = 0
            return
        files, iteration = _name_files(data_batch), runner.iter + 1
        self._first_files = self._first_files if self.in_row else files
        self.in_row += 1
        if self.in_row < self.patience:
            runner.logger.warning(
                f'The loss of iteration {iteration} is {loss} ({self.in_row} in a row; {self.patience} end the run). '
                f'No checkpoint is written until it is finite. Batch: {", ".join(files) or "samples without names"}'
            )
            return
        first = ', '.join(self._first_files[:NAMED_FILES])
        newest, _ = find_newest_checkpoint(runner.work_dir)
        last = f'{newest.name} (continue with --resume)' if newest else 'none, since none was written before'
        raise NotFiniteError(
            f'the loss was {loss} in iterations {iteration - self.patience + 1} to {iteration}; '
            f'the last good checkpoint is {last}. '
            'Lower optim_wrapper.optimizer.lr, clip gradients (optim_wrapper.clip_grad.max_norm=1.0), or check the '
            f'first such batch: {first or "its samples have no names"}'
        )


def why_not_save(runner: Runner) -> str | None:
    """Return why no checkpoint may be written now (loss or weights are not finite), or None.

    Call it in all processes; all get the same result. Weights are checked because a gradient that is not finite
    damages them one iteration before the loss shows it.
    """
    if any_process(any(hook.in_row for hook in runner.hooks if isinstance(hook, FiniteLossHook))):
        return 'the loss is not finite'
    name = find_non_finite(unwrap(runner.model))
    return f'the weight {name or "of another process"} is not finite' if any_process(name is not None) else None


def find_non_finite(model: nn.Module) -> str | None:
    """Return the name of the first parameter or running statistic with a NaN or an infinity; None without any."""
    tensors: dict[str, Tensor] = dict(model.named_parameters())
    tensors |= {name: buffer for name, buffer in model.named_buffers() if name.split('.')[-1] in RUNNING_STATISTICS}
    if not tensors:
        return None
    own = [tensor.to_local() if isinstance(tensor, DTensor) else tensor for tensor in tensors.values()]
    finite = torch.stack([tensor.detach().isfinite().all() for tensor in own]).tolist()
    return next((name for name, good in zip(tensors, finite) if not good), None)


def _name_files(data_batch: Any) -> list[str]:
    samples = data_batch.get('data_samples') if isinstance(data_batch, dict) else None
    samples = samples if isinstance(samples, (list, tuple)) else []
    return [
        str(getattr(sample, 'img_path', None) or f'sample {getattr(sample, "sample_idx", "?")}') for sample in samples
    ]
