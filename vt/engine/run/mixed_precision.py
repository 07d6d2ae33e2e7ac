"""Mixed precision: the optimizer wrapper of bfloat16."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from mmengine.optim import OptimWrapper
from mmengine.runner.amp import autocast
from torch import nn

from vt.registry import OPTIM_WRAPPERS


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
