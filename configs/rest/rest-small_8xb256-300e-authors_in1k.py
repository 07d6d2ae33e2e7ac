# ResT-S on ImageNet-1k as its authors trained it. Published: top-1 79.6; not trained here.
# Source: wofmanaf/ResT 537086d, get_started.md and main.py.
# Remaining: none.
# bash tools/dist_train.sh configs/rest/rest-small_8xb256-300e-authors_in1k.py 8
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/rest-small.py']

model = _base_.architecture
optim_wrapper = dict(optimizer=dict(lr=2e-3), clip_grad=dict(max_norm=5.0))
param_scheduler = _base_.param_scheduler
param_scheduler[0]['start_factor'] = 5e-4
train_dataloader = dict(batch_size=256)
auto_scale_lr = dict(base_batch_size=2048)
