# T2T-ViT_t-14 on ImageNet-1k as its authors trained it. Published: top-1 81.7; not trained here.
# Source: yitu-opensource/T2T-ViT 0f63dc9, README.md (the command for 8 GPUs), main.py.
# Remaining: none; the README's command for 4 GPUs has a rate of 1e-3 for the same 512 images.
# bash tools/dist_train.sh configs/t2t_vit/t2t-vit-t-14_8xb64-310e-authors_in1k.py 8
_base_ = ['../_base_/recipes/timm_in1k.py', '../_base_/models/t2t-vit-t-14.py']

model = _base_.architecture
optim_wrapper = dict(optimizer=dict(lr=5e-4))
param_scheduler = _base_.param_scheduler
param_scheduler[0] |= dict(start_factor=2e-3, length=10)
param_scheduler[1]['begin'] = 10
auto_scale_lr = dict(base_batch_size=512)
