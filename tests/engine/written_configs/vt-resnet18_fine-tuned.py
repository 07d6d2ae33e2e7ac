# VT-ResNet-18 on any folder of images, from torchvision's ImageNet weights of ResNet-18, with the tuned recipe:
# docs/training.md. The pretrained stages have a tenth of the learning rate.
_base_ = 'vt-resnet18.py'

model = dict(backbone=dict(init_cfg=dict(type='Pretrained', checkpoint='torchvision://resnet18')))
pretrained = dict(lr_mult=0.1)
stages = {f'backbone.{name}': pretrained for name in ('conv1', 'bn1', 'layer1', 'layer2', 'layer3')}
optim_wrapper = dict(paramwise_cfg=dict(custom_keys=stages))
train_cfg = dict(max_epochs=30)
