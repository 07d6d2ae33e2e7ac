# CSWin-T on ImageNet-1k as its authors trained it. Published: top-1 82.7; not trained here.
# Source: microsoft/CSWin-Transformer f111ae2, README.md, main.py and models/cswin.py.
# Remaining: none.
# bash tools/dist_train.sh configs/cswin/cswin-tiny_8xb256-310e-authors_in1k.py 8
_base_ = ['../_base_/recipes/timm_in1k.py', '../_base_/models/cswin-tiny.py']

model = _base_.architecture
optim_wrapper = dict(optimizer=dict(lr=2e-3))
param_scheduler = _base_.param_scheduler
param_scheduler[0] |= dict(start_factor=5e-4, length=20)
param_scheduler[1]['begin'] = 20
train_dataloader = dict(batch_size=256)
auto_scale_lr = dict(base_batch_size=2048)
custom_hooks = [dict(type='EMAHook', momentum=1.6e-4, update_buffers=True)]
