# ViTAE-S on ImageNet-1k as its authors trained it. Published: top-1 82.0; not trained here.
# Source: ViTAE-Transformer/ViTAE-Transformer aebf1d7, Image-Classification/README.md and main.py.
# Remaining: the command is that of ViTAE-T, the only one of the first version.
# bash tools/dist_train.sh configs/vitae/vitae-small_4xb128-310e-authors_in1k.py 4
_base_ = ['../_base_/recipes/timm_in1k.py', '../_base_/models/vitae-small.py']

model = _base_.architecture
optim_wrapper = dict(optimizer=dict(lr=1e-3, weight_decay=0.03))
param_scheduler = _base_.param_scheduler
param_scheduler[0]['length'] = param_scheduler[1]['begin'] = 10
train_dataloader = dict(batch_size=128)
auto_scale_lr = dict(base_batch_size=512)
