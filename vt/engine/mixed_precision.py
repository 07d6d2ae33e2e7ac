"""Mixed precision: which one ``--amp`` means, the optimizer's wrapper for it, and which parts float16 is a risk for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from mmengine.config import Config
from mmengine.optim import OptimWrapper
from mmengine.runner.amp import autocast
from torch import nn

from vt.errors import UserError
from vt.models.attentions.token_transformer import TokenTransformer
from vt.models.fusers import Projector
from vt.models.tokenizers.base import AttentionTokenizer
from vt.registry import OPTIM_WRAPPERS


def choose_dtype(cfg: Config) -> str:
    """The precision of ``--amp``, ``'bfloat16'`` or ``'float16'``, in training, validation and tests.

    It is ``optim_wrapper.dtype`` of the config; where that is not set, bfloat16 if the GPU has instructions for it,
    else float16. On a CPU it is always bfloat16.
    """
    if not torch.cuda.is_available():
        return 'bfloat16'
    named = (cfg.get('optim_wrapper') or {}).get('dtype')
    if named is not None:
        return str(named).removeprefix('torch.')
    return 'bfloat16' if torch.cuda.is_bf16_supported(including_emulation=False) else 'float16'


def enter_amp(cfg: Config, amp: bool) -> list[str]:
    """Enter mixed precision in a config, and make it what autocast computes in on a GPU.

    ``optim_wrapper`` gets its type and dtype, and in float16 mmengine's dynamic loss scale; bfloat16 has none.
    Validation and tests with ``fp16=True`` then have it too. Unless ``amp`` is asked for, a config that names
    mmengine's ``AmpOptimWrapper`` and no ``dtype`` keeps mmengine's way, float16 on a GPU. Returns lines for the log.
    """
    wrapper = cfg.get('optim_wrapper') or {}
    named = wrapper.get('dtype')
    if not (amp or (named is not None and trains_with_amp(wrapper))):
        return []
    dtype = choose_dtype(cfg)
    if wrapper and dtype == 'bfloat16':
        wrapper.update(type='vt.BFloat16AmpOptimWrapper', dtype=dtype)
        wrapper.pop('loss_scale', None)
    elif wrapper:
        wrapper.update(type='AmpOptimWrapper', dtype=dtype, loss_scale=wrapper.get('loss_scale', 'dynamic'))
    if cfg.get('fsdp') and cfg.get('val_cfg') is not None:
        cfg.val_cfg.fp16 = True  # weights are gathered in bfloat16 there too
    if torch.cuda.is_available():
        torch.set_autocast_dtype('cuda', getattr(torch, dtype))
    is_other = named is not None and str(named).removeprefix('torch.') != dtype
    return [f'optim_wrapper.dtype={named} is not used: mixed precision on a CPU is {dtype}'] if is_other else []


def trains_with_amp(wrapper: dict) -> bool:
    """Whether the config of an optimizer's wrapper names one for mixed precision."""
    return 'Amp' in str(wrapper.get('type'))


def training_dtype(wrapper: dict) -> str | None:
    """The mixed precision that the config of an optimizer's wrapper trains in; None for float32.

    Raises:
        UserError: it has settings of mixed precision, and names a wrapper without.
    """
    if trains_with_amp(wrapper):
        usual = 'bfloat16' if 'vt.' in str(wrapper['type']) else evaluation_dtype()
        return str(wrapper.get('dtype') or usual).removeprefix('torch.')
    for key in ('dtype', 'loss_scale'):
        if wrapper.get(key) is not None:
            raise UserError(f'optim_wrapper.{key} is a setting of mixed precision: add --amp, or leave it out')
    return None


def evaluation_dtype() -> str:
    """What mmengine's loops compute in where ``fp16=True``."""
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    return str(torch.get_autocast_dtype(device)).removeprefix('torch.')


def describe_risk(model: nn.Module) -> str | None:
    """A line about the parts of a model whose attention logits are not scaled, for a run in float16; None without any.

    The paper's equations divide logits by nothing; they grow with the square of the tokens' scale.
    """
    parts = (AttentionTokenizer, TokenTransformer, Projector)
    names = [name for name, part in model.named_modules() if isinstance(part, parts) and part.scale == 1]
    if not names:
        return None
    shown = f'{", ".join(names[:3])}{" and others" if len(names) > 3 else ""}'
    return (
        f'float16 ends at 65504, and attention logits are not scaled in {shown}: if results are not finite, leave '
        '--amp out, or train another model, with scale_logits=True in the configs of these parts'
    )


@OPTIM_WRAPPERS.register_module(name=['BFloat16AmpOptimWrapper', 'CPUAmpOptimWrapper'])  # the second is its old name
class BFloat16AmpOptimWrapper(OptimWrapper):
    """An optimizer wrapper whose forward pass runs in bfloat16, on a GPU or on a CPU.

    bfloat16 has float32's range, so there is no loss scaler. mmengine's ``AmpOptimWrapper`` needs an accelerator and
    has a scaler in every precision, by which each step waits for the GPU. This one takes its arguments, so that one
    config serves both, and uses neither ``loss_scale`` nor ``dtype`` nor ``use_fsdp``.
    """

    def __init__(self, loss_scale: Any = None, dtype: Any = None, use_fsdp: bool = False, **kwargs) -> None:
        super().__init__(**kwargs)

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        with super().optim_context(model), autocast(dtype=torch.bfloat16):
            yield
