"""How layers start, where mmengine's initialisers have no such distribution."""

import re
from collections.abc import Sequence

from torch import nn

from vt.errors import UserError
from vt.registry import WEIGHT_INITIALIZERS


@WEIGHT_INITIALIZERS.register_module()
class LayerInit:
    """Draw layers again as PyTorch does, then their weights or biases otherwise; an entry of ``init_cfg``.

    Of several entries the later one wins.

    Args:
        layer: class names of the layers, such as ``'Linear'`` or ``['Conv2d', 'Linear']``; subclasses count.
        names: a regular expression, found in the names of the layers in the module, such as ``'fc[12]$'``; all layers
            by default.
        std: standard deviation of a normal distribution of the weights; ``'fan_out'`` for ``sqrt(2 / fan out)``, each
            group of channels by itself; PyTorch's by default.
        bias: all biases; PyTorch's by default.

    Raises:
        UserError: there are no such layers.
    """

    def __init__(
        self, layer: str | Sequence[str], names: str = '', std: float | str | None = None, bias: float | None = None
    ) -> None:
        self.layer = {layer} if isinstance(layer, str) else set(layer)
        self.names, self.std, self.bias = names, std, bias
        if isinstance(std, str) and std != 'fan_out':
            raise UserError(f"LayerInit: std={std!r} is neither a number nor 'fan_out'")

    def __call__(self, module: nn.Module) -> None:
        found = [
            each
            for name, each in module.named_modules()
            if self.layer & {base.__name__ for base in type(each).__mro__}
            and re.search(self.names, name)
            and getattr(each, 'weight', None) is not None
        ]
        if not found:
            raise UserError(
                f'LayerInit: {type(module).__name__} has no layer of {", ".join(sorted(self.layer))} whose name fits '
                f'{self.names!r}; see its named_modules()'
            )
        for each in found:
            if hasattr(each, 'reset_parameters'):
                each.reset_parameters()
            if self.std == 'fan_out':
                fan_out = each.weight[0, 0].numel() * each.weight.shape[0] // each.groups
                nn.init.normal_(each.weight, std=(2 / fan_out) ** 0.5)
            elif self.std is not None:
                nn.init.normal_(each.weight, std=self.std)
            if self.bias is not None and each.bias is not None:
                nn.init.constant_(each.bias, self.bias)
