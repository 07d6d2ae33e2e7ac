# ELSA-Swin-T on ImageNet-1k as its authors trained it. Published: top-1 82.7; not trained here.
# Source: damo-cv/ELSA f3b7ac7, README.md, cls/train.py and cls/models/elsa_swin.py.
# Remaining: none.
# bash tools/dist_train.sh configs/elsa/elsa-swin-tiny_8xb128-310e-authors_in1k.py 8
_base_ = ['../_base_/recipes/timm_in1k.py', '../_base_/models/elsa-swin-tiny.py']

model = _base_.architecture
model['backbone']['drop_path_rate'] = 0.1
train_dataloader = dict(batch_size=128)
optim_wrapper = dict(
    clip_grad=dict(max_norm=5.0),
    paramwise_cfg=dict(custom_keys={'bias.table': dict(decay_mult=1.0)}),  # timm's optimizer decays it
)
param_scheduler = _base_.param_scheduler
param_scheduler[0]['length'] = param_scheduler[1]['begin'] = 20
custom_hooks = []  # weights are averaged for ELSA-Swin-B alone
