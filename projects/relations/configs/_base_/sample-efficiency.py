# How much a network learns from few images: problem 1 of the SVRT at 64x64, 2,560 iterations of 32 images, FLOPs within
# a tenth of those of ResNet-18 at half width, 89.8 M.
_base_ = [
    'svrt-1.py',
    'adamw_bs32-2560.py',
    'default_runtime.py',
]

train_dataloader = dict(sampler=dict(type='InfiniteSampler'))  # the other one rests two seconds an epoch

# A position starts at 0.02, a patch at 0.6: at the common rate the places stay unseen for many epochs. So it is with
# ViT and MViT; Swin's table of offsets is of no place and learns at the common rate, as published.
optim_wrapper = dict(
    clip_grad=dict(max_norm=1.0),
    paramwise_cfg=dict(custom_keys={'stages.0.position': dict(lr_mult=20.0, decay_mult=0.0)}),
)

default_hooks = dict(checkpoint=dict(by_epoch=False, interval=2560))
log_processor = dict(by_epoch=False)
