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

    mmengine's ``AmpOptimWrapper`` needs an accelerator. This one takes its arguments, so that one config serves both.

    Args:
        loss_scale: not used, since bfloat16 has float32's range.
        dtype: not used either: whatever an accelerator computes in, float16 for example, a CPU does in bfloat16.
        use_fsdp: not used; it chooses the kind of loss scale.
        kwargs: those of mmengine's ``OptimWrapper``.
    """

    def __init__(
        self,
        loss_scale: float | str | dict | None = None,
        dtype: str | torch.dtype | None = None,
        use_fsdp: bool = False,
        **kwargs,
    ) -> None:
        super().__init__(**kwargs)

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        with super().optim_context(model), autocast(device_type='cpu', dtype=torch.bfloat16):
            yield
