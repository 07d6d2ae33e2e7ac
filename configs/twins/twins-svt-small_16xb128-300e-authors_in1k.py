# Twins-SVT-S on ImageNet-1k as its authors trained it. Published: top-1 81.7; not trained here.
# Source: Meituan-AutoML/Twins c1ff671, main.py, gvt.py and logs/svt_s.txt, whose rate of 2e-3 is that of 2048 images.
# Remaining: the command of the small model is not public, nor is its stochastic depth, here 0.2.
# bash tools/dist_train.sh configs/twins/twins-svt-small_16xb128-300e-authors_in1k.py 16
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/twins-svt-small.py']

model = _base_.architecture
train_dataloader = dict(batch_size=128, sampler=dict(_delete_=True, type='DefaultSampler', shuffle=True))
optim_wrapper = dict(
    optimizer=dict(lr=2e-3),
    clip_grad=dict(max_norm=5.0),
    paramwise_cfg=dict(custom_keys={'peg': dict(decay_mult=0.0)}),
)
param_scheduler = _base_.param_scheduler
param_scheduler[0]['start_factor'] = 5e-4
auto_scale_lr = dict(base_batch_size=2048)
