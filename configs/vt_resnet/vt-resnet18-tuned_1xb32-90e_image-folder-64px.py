# VT-ResNet-18 on any folder of small images, from 32x32 to about 125x125, with the tuned recipe: docs/training.md. It
# has 8 tokens of 256 channels. The published 16 of 1,024 would cost more than the stage of ResNet-18 they replace.
# vt train vt-resnet18-tuned_1xb32-90e_image-folder-64px data=<folder>
_base_ = ['../_base_/models/vt-resnet18.py', '../_base_/recipes/scratch_vt-resnet_image-folder.py']

image_size = 64
model = dict(backbone=dict(num_tokens=8, token_channels=256), head=dict(num_classes='auto', in_channels=256, topk=(1,)))
