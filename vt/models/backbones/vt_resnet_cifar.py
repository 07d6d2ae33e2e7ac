"""VT-ResNet for small images, such as those of CIFAR and Fashion-MNIST."""

from mmpretrain.models.backbones import ResNet_CIFAR

from vt.registry import MODELS

from .vt_resnet import VTResNet


@MODELS.register_module()
class VTResNetCIFAR(VTResNet, ResNet_CIFAR):
    """:class:`VTResNet` for small images, with the stem of :class:`mmpretrain.models.ResNet_CIFAR`: one 3x3
    convolution without stride or pooling. Args: those of :class:`VTResNet` without ``deep_stem``.
    """

    stem_stride = 1
