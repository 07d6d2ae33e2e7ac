"""Batch normalisations folded into the convolutions before them while a model is tested."""

import copy
from collections.abc import Callable

from mmcv.cnn import ConvModule, fuse_conv_bn
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.registry import MODELS
from mmengine.runner import Runner
from torch import nn

# Backbones of which each normalisation stands behind the convolution whose output it takes.
BACKBONES = ('ResNet', 'ResNetV1c', 'ResNetV1d', 'VTResNet', 'VTResNetAnywhere')


class FoldNormsHook(Hook):
    """Test a copy of the model without these normalisations; the runner has its own model back afterwards.

    In evaluation a normalisation is a factor and a summand for each channel, which a convolution has already.
    Predictions change by rounding alone. A model that is wrapped for several processes stays as it is.

    Args:
        finish: called with each copy, to compile it for example.
    """

    priority = 'LOWEST'  # a copy of what other hooks have put into the model, such as averages of its weights
    model: nn.Module | None = None

    def __init__(self, finish: Callable[[nn.Module], None] = lambda model: None) -> None:
        self.finish = finish

    def before_test_epoch(self, runner: Runner) -> None:
        if not is_model_wrapper(runner.model):
            self.model = runner.model
            runner.model = fold_norms(copy.deepcopy(runner.model))
            self.finish(runner.model)

    def after_test_epoch(self, runner: Runner, metrics: dict | None = None) -> None:
        if self.model is not None:
            runner.model, self.model = self.model, None


def fold_norms(model: nn.Module) -> nn.Module:
    """Fold, in place, where the order of parts is known: in ResNets, and in mmcv's convolution with a normalisation."""
    scopes = (MODELS, *MODELS.children.values())
    backbones = {scope.module_dict.get(name) for scope in scopes for name in BACKBONES}
    for part in list(model.modules()):
        is_in_order = type(part) is ConvModule and part.order.index('norm') == part.order.index('conv') + 1
        # Other kinds of convolution may do more with their weight, such as standardize it.
        are_plain = all(type(layer) is nn.Conv2d for layer in part.modules() if isinstance(layer, nn.Conv2d))
        if (type(part) in backbones or is_in_order) and are_plain:
            fuse_conv_bn(part)
    return model
