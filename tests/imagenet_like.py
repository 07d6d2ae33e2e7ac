"""ResNets that stand for ones trained on ImageNet, which is not at hand: random weights, statistics like theirs."""

import torch
from mmpretrain.models import ResNet
from torch import nn
from torch.nn.functional import interpolate


def resnet_of_scale(depth, map_scale, **options):
    """A ResNet of random weights with statistics as ImageNet's in its normalisations; its stage-4 map is scaled."""
    source = ResNet(depth, **options)
    images = interpolate(torch.randn(8, 3, 8, 8), size=(64, 64), mode='bicubic')
    for module in source.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.1, 0.5)
            nn.init.normal_(module.bias, -0.1, 0.2)
            module.momentum = None  # running statistics are the average of what came in
    ends = [getattr(block, 'norm3', None) or block.norm2 for block in source.layer3]
    for norm in (source.layer3[0].downsample[-1], *ends):
        norm.weight.data *= map_scale
        norm.bias.data *= map_scale
    source(images)
    return source, images
