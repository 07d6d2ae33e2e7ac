"""Fold batch normalisation into the preceding convolution during tests."""

import copy
from collections.abc import Callable

from mmcv.cnn import ConvModule, fuse_conv_bn
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.registry import MODELS
from mmengine.runner import Runner
from torch import nn

# Backbones in which each normalisation is defined directly after the convolution whose output it normalises.
BACKBONES = ('ResNet', 'ResNetV1c', 'ResNetV1d', 'VTResNet')


class FoldNormsHook(Hook):
    """Test a copy of the model whose batch normalisations are folded; the runner's model is restored afterwards.

    In evaluation, normalisation is a scale and a shift per channel, which the convolution can apply. Predictions change
    only by rounding. A model that is wrapped for several processes is not changed.

    Args:
        finish: function that is called with the copy, for example to compile it.
    """

    priority = 'LOWEST'  # copy the weights that other hooks have set, such as averages
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
    """Fold normalisations in place in ResNets and in mmcv's ``ConvModule``, where the order of layers is known."""
    scopes = (MODELS, *MODELS.children.values())
    backbones = {scope.module_dict.get(name) for scope in scopes for name in BACKBONES}
    for part in list(model.modules()):
        is_in_order = type(part) is ConvModule and part.order.index('norm') == part.order.index('conv') + 1
        # Subclasses of Conv2d may transform their weight, such as standardise it.
        are_plain = all(type(layer) is nn.Conv2d for layer in part.modules() if isinstance(layer, nn.Conv2d))
        if (type(part) in backbones or is_in_order) and are_plain:
            fuse_conv_bn(part)
    return model
