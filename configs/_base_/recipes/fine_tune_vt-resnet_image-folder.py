# A VT-ResNet from weights of a ResNet on any folder of images, with the tuned recipe: docs/training.md. The pretrained
# stages have a tenth of the learning rate.
_base_ = 'scratch_vt-resnet_image-folder.py'

stages = {f'backbone.{name}': dict(lr_mult=0.1) for name in ('conv1', 'bn1', 'layer1', 'layer2', 'layer3')}
optim_wrapper = dict(paramwise_cfg=dict(custom_keys=stages))
train_cfg = dict(max_epochs=30)
