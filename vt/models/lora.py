"""Low-rank adapters of a frozen backbone (Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022).

Letters: g groups, I and O channels of a group, r rank.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from mmengine.model import BaseModule
from mmpretrain.models.peft.lora import LoRALinear
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from vt.errors import UserError
from vt.registry import MODELS

from .grouped_linear import GroupedLinear


class GroupedLoRA(nn.Module):
    """``W + (alpha / r) A B`` of each block of a token-side matrix, ``(g, I, O)``; B is zero at the start."""

    def __init__(self, weight: Tensor, rank: int, alpha: float) -> None:
        super().__init__()
        groups, inputs, outputs = weight.shape
        self.scaling = alpha / rank
        self.lora_down = nn.Parameter(torch.empty(groups, inputs, rank).uniform_(-(inputs**-0.5), inputs**-0.5))
        self.lora_up = nn.Parameter(torch.zeros(groups, rank, outputs))

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.scaling * self.lora_down @ self.lora_up


def _layer_depth(of_module: Callable, param_name: str, prefix: str = '') -> tuple[int, int]:
    """Depth of a parameter or of the matrix that it adapts, and number of layers, as the frozen part counts them."""
    own = re.sub(r'\.parametrizations\.(\w+)\..*', r'.\1', param_name)
    own = re.sub(r'\.(original_layer|lora_down|lora_up)\b', '', own)
    inner = f'{prefix}module.'
    return of_module(prefix + own.removeprefix(inner) if own.startswith(inner) else own, prefix)


@MODELS.register_module()
class LoRAModel(BaseModule):
    """A frozen part of a model whose matrices have trained adapters; its arguments are those of MMPretrain's class.

    Matrices are ``nn.Linear``, adapted by MMPretrain's ``LoRALinear``, and VT's token-side ones, which that class
    leaves out. Checkpoints hold the frozen weights too, so that testing, prediction and export need no other file.
    Batch normalisations keep their statistics. What is outside of it, such as the head, is trained as a whole.

    Args:
        module: config of the part, with its weights, ``init_cfg=dict(type='Pretrained', checkpoint=...)``.
        targets: which matrices, ``dict(type=NAME)`` each: the end of their names, or a regular expression of the whole
            name. ``alpha``, ``rank`` and ``drop_rate`` may stand beside.
        rank: r.
        alpha: the product of an adapter is multiplied by ``alpha / rank``.
        drop_rate: dropout in front of an adapter; not of token-side matrices.

    Raises:
        UserError: a target is the name of no matrix, or has other keys; a rank that is no whole number from 1, an
            ``alpha`` that is not above 0; ``drop_rate`` for token-side matrices.
    """

    def __init__(
        self, module: dict, targets: Sequence[dict], rank: int = 8, alpha: float = 16, drop_rate: float = 0.0
    ) -> None:
        super().__init__()
        self.module_cfg, self.module = module, MODELS.build(module)
        kinds = (nn.Linear, GroupedLinear)
        matrices = {name: part for name, part in self.module.named_modules() if isinstance(part, kinds)}
        for target in targets or [dict(type='none')]:
            if 'type' not in target or target.keys() - {'type', 'rank', 'alpha', 'drop_rate'}:
                words = 'needs a type, and may have rank, alpha and drop_rate'
                raise UserError(f'LoRAModel: the target {dict(target)} {words}')
            self._adapt(matrices, **dict(rank=rank, alpha=alpha, drop_rate=drop_rate) | target)
        for name, parameter in self.named_parameters():
            parameter.requires_grad = 'lora_' in name

    def _adapt(self, matrices: dict[str, nn.Module], type: str, rank: int, alpha: float, drop_rate: float) -> None:
        """Adapt the matrices that a target names, and take them out."""
        try:
            found = [name for name in matrices if name.endswith(type) or re.fullmatch(type, name)]
        except re.error as error:
            raise UserError(f'LoRAModel: target {type!r} is no regular expression: {error}') from error
        if alpha <= 0:
            raise UserError(f'LoRAModel: alpha={alpha} must be above 0: adapters would have no effect')
        if not found or not isinstance(rank, int) or rank < 1:
            known = ', '.join(sorted({name.rpartition('.')[2] for name in matrices}))
            raise UserError(f'LoRAModel: target {type!r}, rank {rank}: give a rank of at least 1 and some of {known}')
        for name in found:
            part, (owner, _, own) = matrices.pop(name), name.rpartition('.')
            if isinstance(part, nn.Linear):
                setattr(self.module.get_submodule(owner), own, LoRALinear(part, alpha, rank, drop_rate))
            elif drop_rate:
                raise UserError(f'LoRAModel: drop_rate={drop_rate} has no effect on {name}, a token-side matrix')
            else:
                register_parametrization(part, 'weight', GroupedLoRA(part.weight, rank, alpha))

    def init_weights(self) -> None:
        """Draw or load the frozen weights as ``module`` says; adapters start without effect."""
        plain = MODELS.build(self.module_cfg)
        plain.init_weights()
        state = plain.state_dict()
        for name, tensor in self.module.state_dict().items():
            own = re.sub(r'\.original_layer\b|\.parametrizations(?=\.\w+\.original)|(?<=\w)\.original$', '', name)
            if 'lora_' not in name:
                tensor.copy_(state[own])

    def train(self, mode: bool = True) -> 'LoRAModel':
        """Switch modes; batch normalisations stay in evaluation mode."""
        super().train(mode)
        for part in self.module.modules():
            if getattr(part, 'running_mean', None) is not None:
                part.eval()
        return self

    def forward(self, *args, **kwargs) -> Any:
        return self.module(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            found = getattr(super().__getattr__('module'), name)
        return partial(_layer_depth, found) if name == 'get_layer_depth' else found
