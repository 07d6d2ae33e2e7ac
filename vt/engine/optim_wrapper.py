"""Mixed precision where there is no GPU."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from mmengine.optim import OptimWrapper
from mmengine.runner.amp import autocast
from torch import nn

from vt.registry import OPTIM_WRAPPERS


@OPTIM_WRAPPERS.register_module()
class CPUAmpOptimWrapper(OptimWrapper):
    """An optimizer wrapper whose forward pass runs in bfloat16 on the CPU.

    mmengine's ``AmpOptimWrapper`` needs an accelerator. bfloat16 has float32's range, so no loss scale is needed.
    """

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        with super().optim_context(model), autocast(device_type='cpu', dtype=torch.bfloat16):
            yield
