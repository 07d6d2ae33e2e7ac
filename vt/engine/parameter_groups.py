"""Complete the config of an optimizer for rates and decays by parameter (``paramwise_cfg``)."""

import inspect
from typing import Any

from mmengine.registry import OPTIMIZERS
from torch import nn

from vt.checkpoints.weights import unwrap
from vt.models.layer_depths import depths_in_model


def complete_optimizer(cfg: dict, model: nn.Module) -> dict:
    """Return the config of an optimizer wrapper with the default rate and decay of its optimizer.

    For layer-wise learning rates, a model that does not count its layers gets a ``get_layer_depth``.
    """
    optimizer = cfg.get('optimizer')
    if not (cfg.get('paramwise_cfg') and isinstance(optimizer, dict)):
        return cfg
    if str(cfg.get('constructor')).endswith('LearningRateDecayOptimWrapperConstructor'):
        model = unwrap(model)
        try:
            model.get_layer_depth('backbone.')
        except (AttributeError, NotImplementedError):
            model.get_layer_depth = depths_in_model(model.backbone)
    kind = optimizer.get('type')
    known: Any = inspect.signature(OPTIMIZERS.get(kind) if isinstance(kind, str) else kind).parameters
    defaults = {name: known[name].default for name in ('lr', 'weight_decay') if name in known}
    defaults = {name: value for name, value in defaults.items() if isinstance(value, (int, float))}
    return cfg | dict(optimizer=defaults | optimizer)
