# HRFormer-S on ImageNet-1k as its authors trained it. Published: top-1 81.2; not trained here.
# Source: HRNet/HRFormer 1245b88, cls/run_dist.sh, cls/config.py, cls/configs/hrt/hrt_small.yaml and cls/optimizer.py.
# Remaining: their processes see the same eighth of the images in every epoch (`--zip`).
# bash tools/dist_train.sh configs/hrformer/hrformer-small_8xb128-300e-authors_in1k.py 8
_base_ = ['../_base_/recipes/swin_in1k.py', '../_base_/models/hrformer-small.py']

model = _base_.architecture
train_dataloader = dict(batch_size=128)
optim_wrapper = dict(paramwise_cfg=dict(custom_keys={'bias.table': dict(decay_mult=1.0)}))
