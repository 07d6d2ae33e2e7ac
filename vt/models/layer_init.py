"""An initialiser with distributions that mmengine's initialisers do not have."""

import re
from collections.abc import Sequence

from torch import nn

from vt.errors import UserError
from vt.registry import WEIGHT_INITIALIZERS


@WEIGHT_INITIALIZERS.register_module()
class LayerInit:
    """Reset layers to PyTorch's initialisation, then set the distribution of weights or biases; used in ``init_cfg``.

    If several entries match a layer, the last one applies.

    Args:
        layer: class names of the layers, such as ``'Linear'`` or ``['Conv2d', 'Linear']``; subclasses are included.
            Of PyTorch's ``'MultiheadAttention'`` the projection of Q, K and V is meant.
        names: regular expression that is searched in the layers' names, such as ``'fc[12]$'``; all layers by default.
        std: standard deviation of normally distributed weights, or ``'fan_out'`` for ``sqrt(2 / fan_out)`` with the
            fan-out of one channel group; PyTorch's initialisation by default.
        bias: value of the biases; PyTorch's initialisation by default.

    Raises:
        UserError: no layer matches.
    """

    def __init__(
        self, layer: str | Sequence[str], names: str = '', std: float | str | None = None, bias: float | None = None
    ) -> None:
        self.layer = {layer} if isinstance(layer, str) else set(layer)
        self.names, self.std, self.bias = names, std, bias

    def __call__(self, module: nn.Module) -> None:
        """Initialise the layers of a module that are meant."""
        found = [
            (each, weight)
            for name, each in module.named_modules()
            if self.layer & {base.__name__ for base in type(each).__mro__}
            and re.search(self.names, name)
            and (weight := getattr(each, 'weight', getattr(each, 'in_proj_weight', None))) is not None
        ]
        if not found:
            raise UserError(
                f'LayerInit: {type(module).__name__} has no {" or ".join(sorted(self.layer))} whose name '
                f'matches {self.names!r}; see its named_modules()'
            )
        for each, weight in found:
            if hasattr(each, 'reset_parameters'):
                each.reset_parameters()
            if self.std == 'fan_out':
                fan_out = weight[0, 0].numel() * weight.shape[0] // each.groups
                nn.init.normal_(weight, std=(2 / fan_out) ** 0.5)
            elif self.std is not None:
                nn.init.normal_(weight, std=self.std)
            bias = getattr(each, 'bias', getattr(each, 'in_proj_bias', None))
            if self.bias is not None and bias is not None:
                nn.init.constant_(bias, self.bias)
