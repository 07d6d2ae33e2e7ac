# Swin's recipe on ImageNet-1k: microsoft/Swin-Transformer f82860b, config.py. 20 epochs of warm-up, gradients clipped,
# no repeated augmentation; else DeiT's.
_base_ = 'deit_in1k.py'

train_dataloader = dict(sampler=dict(_delete_=True, type='DefaultSampler', shuffle=True))
optim_wrapper = dict(clip_grad=dict(max_norm=5.0))
param_scheduler = _base_.param_scheduler
param_scheduler[0]['length'] = param_scheduler[1]['begin'] = 20
