"""Mixed precision: the dtype of ``--amp``, and the optimizer wrapper for it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from mmengine.config import Config
from mmengine.optim import OptimWrapper
from mmengine.runner.amp import autocast
from torch import nn

from vt.registry import OPTIM_WRAPPERS


def choose_dtype(wrapper: dict) -> str:
    """Return the dtype of ``--amp`` in training, validation and tests, ``'bfloat16'`` or ``'float16'``.

    It is that of the optimizer wrapper's config if set, else bfloat16 if the GPU supports it natively, else float16.
    On a CPU it is always bfloat16.
    """
    if not torch.cuda.is_available() or ('BFloat16' in str(wrapper.get('type')) and not wrapper.get('dtype')):
        return 'bfloat16'
    usual = 'bfloat16' if torch.cuda.is_bf16_supported(including_emulation=False) else 'float16'
    return str(wrapper.get('dtype') or usual).removeprefix('torch.')


def predicting(cfg: Config, device: str) -> AbstractContextManager:
    """Return the context of an inferencer's forward pass: mixed precision with ``test_cfg.fp16``, as in tests."""
    dtype = 'bfloat16' if device == 'cpu' else choose_dtype(cfg.get('optim_wrapper') or {})
    half = bool((cfg.get('test_cfg') or {}).get('fp16'))
    return torch.autocast(device, getattr(torch, dtype)) if half else nullcontext()  # which leaves a user's as it is


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
