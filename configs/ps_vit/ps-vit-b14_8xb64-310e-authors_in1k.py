# PS-ViT-B/14 on ImageNet-1k as its authors trained it. Published: top-1 81.7; not trained here.
# Source: yuexy/PS-ViT a63a397, configs/ps_vit_b_14.yaml, main.py, models/ps_vit.py and scripts/train_slurm.sh.
# Remaining: the number of GPUs is not public, here 8 of the 64 images in the file.
# bash tools/dist_train.sh configs/ps_vit/ps-vit-b14_8xb64-310e-authors_in1k.py 8
_base_ = ['../_base_/recipes/timm_in1k.py', '../_base_/models/ps-vit-b14.py']

model = _base_.architecture
rates = [0.1 * block / 13 for block in range(14)]
parts = dict(attention=dict(qkv_bias=False, proj_dropout=0.1), feed_forward=dict(ratio=3, dropout=0.1))
model['backbone'].pop('drop_path_rate')
model['backbone']['stages'][0] |= dict(drop_path=rates[4:], **parts)
model['backbone']['stages'][0]['embed'] |= dict(drop_paths=rates[:4], **parts)
model['train_cfg'] = dict(augments=[dict(type='Mixup', alpha=0.2), dict(type='CutMix', alpha=1.0)])

train_pipeline = [*_base_.train_pipeline[:4], _base_.train_pipeline[5]]  # nothing is erased
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
optim_wrapper = dict(optimizer=dict(lr=5e-4), paramwise_cfg=dict(custom_keys={'embed.shifts': dict(decay_mult=0.0)}))
param_scheduler = _base_.param_scheduler
param_scheduler[0] |= dict(start_factor=2e-3, length=3)
param_scheduler[1]['begin'] = 3
auto_scale_lr = dict(base_batch_size=512)
