# ViT-S with early convolutions on ImageNet-1k, with the public part of its authors' recipe. Published: top-1 81.4; not
# trained here.
# Source: facebookresearch/pycls 5719de6, pycls/models/vit.py and pycls/core/config.py.
# Remaining: the model is public (no stochastic depth, epsilon 1e-5), the recipe is not; here DeiT's.
# bash tools/dist_train.sh configs/early_conv/vit-early-conv_16xb64-300e-authors_in1k.py 16
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/vit-early-conv.py']

model = _base_.architecture
model['backbone'].pop('drop_path_rate')
model['backbone']['stages'][0]['norm_cfg'] = dict(type='LN')
