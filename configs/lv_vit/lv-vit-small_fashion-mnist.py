# LV-ViT-S without labels for patches, which need a teacher, on Fashion-MNIST, enlarged to 64x64.
# Two epochs: projects/small_data.
# vt train lv-vit-small_fashion-mnist
_base_ = ['../_base_/recipes/tokens_fashion-mnist-64px.py', '../_base_/models/lv-vit-small.py']

model = _base_.architecture
model |= dict(teacher=None, teacher_checkpoint=None)
