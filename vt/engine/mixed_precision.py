"""Mixed precision: exact scores, and the optimizer wrapper of bfloat16."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from mmengine.optim import OptimWrapper
from mmengine.runner.amp import autocast
from torch import nn

from vt.registry import OPTIM_WRAPPERS


def keep_scores_exact(model: nn.Module) -> None:
    """Make a classifier's logits float32 before its softmax, in tests and predictions in mixed precision.

    On a CPU the softmax would be bfloat16, whose scores have three digits, add up to less or more than 1, and are equal
    for classes that are near each other.
    """
    head = getattr(model, 'head', None)
    if isinstance(head, nn.Module):
        head.register_forward_hook(_in_float32)


def _in_float32(head: nn.Module, args: tuple, logits: Any) -> Any:
    return logits.float() if isinstance(logits, torch.Tensor) and not head.training else logits


@OPTIM_WRAPPERS.register_module()
class BFloat16AmpOptimWrapper(OptimWrapper):
    """Optimizer wrapper that runs the forward pass in bfloat16, on a GPU or a CPU.

    bfloat16 has the range of float32, so no loss scaler is needed. mmengine's ``AmpOptimWrapper`` needs an accelerator,
    and its scaler makes each step wait for the GPU.

    Args:
        loss_scale, dtype, use_fsdp: ignored; accepted so that configs of ``AmpOptimWrapper`` work.
        **kwargs: arguments of mmengine's ``OptimWrapper``.
    """

    def __init__(self, loss_scale: Any = None, dtype: Any = None, use_fsdp: bool = False, **kwargs) -> None:
        super().__init__(**kwargs)

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        with super().optim_context(model), autocast(dtype=torch.bfloat16):
            yield
