"""Low-rank adapters of a frozen backbone (Hu et al., "LoRA: Low-Rank Adaptation ...", ICLR 2022)."""

import re
from collections.abc import Sequence
from typing import Any

from mmengine.model import BaseModule
from mmpretrain.models.peft.lora import LoRALinear
from torch import nn

from vt.errors import UserError
from vt.registry import MODELS


@MODELS.register_module()
class LoRAModel(BaseModule):
    """A frozen part of a model whose ``nn.Linear`` are adapted by MMPretrain's ``LoRALinear``.

    Unlike with MMPretrain's class, whose arguments it has, checkpoints contain the frozen weights too: testing,
    prediction and export need no other file. Batch normalisations keep their statistics.

    Args:
        module: config of the part, with its weights, ``init_cfg=dict(type='Pretrained', checkpoint=...)``.
        targets: which layers, ``dict(type=NAME)`` each: the end of their names, or a regular expression of the whole
            name. ``alpha``, ``rank`` and ``drop_rate`` may stand beside.
        rank: rank of the adapters.
        alpha: the product of an adapter is multiplied by ``alpha / rank``.
        drop_rate: dropout in front of an adapter.

    Raises:
        UserError: no linear layer matches a target.
    """

    def __init__(
        self, module: dict, targets: Sequence[dict], rank: int = 8, alpha: float = 16, drop_rate: float = 0.0
    ) -> None:
        super().__init__()
        self.module = MODELS.build(module)
        layers = {name: part for name, part in self.module.named_modules() if isinstance(part, nn.Linear)}
        for target in targets:
            options: dict[str, Any] = dict(rank=rank, alpha=alpha, drop_rate=drop_rate) | target
            kind = options.pop('type')
            found = [name for name in layers if name.endswith(kind) or re.fullmatch(kind, name)]
            if not found:
                known = ', '.join(sorted({name.rpartition('.')[2] for name in layers}))
                raise UserError(f'LoRAModel: no linear layer matches target {kind!r}: use some of {known}')
            for name in found:
                self.module.set_submodule(name, LoRALinear(layers.pop(name), **options))
        for name, parameter in self.named_parameters():
            parameter.requires_grad = '.lora_' in name

    def init_weights(self) -> None:
        """Draw or load the frozen weights as ``module`` says; adapters start without effect."""
        adapters = {name: part for name, part in self.module.named_modules() if isinstance(part, LoRALinear)}
        for name, adapter in adapters.items():
            self.module.set_submodule(name, adapter.original_layer)
        self.module.init_weights()
        for name, adapter in adapters.items():
            self.module.set_submodule(name, adapter)

    def train(self, mode: bool = True) -> 'LoRAModel':
        """Switch modes; batch normalisations stay in evaluation mode."""
        super().train(mode)
        for part in self.module.modules():
            if getattr(part, 'running_mean', None) is not None:
                part.eval()
        return self

    def forward(self, *args, **kwargs) -> Any:
        return self.module(*args, **kwargs)

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter, or of the layer that it adapts, as the frozen part counts it."""
        own = re.sub(r'\.(original_layer|lora_down|lora_up)\b', '', param_name)
        return self.module.get_layer_depth(prefix + own.removeprefix(f'{prefix}module.'), prefix)
