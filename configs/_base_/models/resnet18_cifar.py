# ResNet-18 for images of 32x32: a stem of one 3x3 convolution, so that stage 4's map has 8x8 pixels and stage 5's 4x4.
_base_ = 'resnet18.py'

model = dict(backbone=dict(type='ResNet_CIFAR'), head=dict(num_classes=10, topk=(1,)))
