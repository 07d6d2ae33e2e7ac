# detectron2's 1x schedule with its learning rate for 32 images: SGD, 0.04 x0.1 after 60k and 80k of 90k iterations.
# Normalisation has no weight decay there.
optim_wrapper = dict(
    optimizer=dict(type='SGD', lr=0.04, momentum=0.9, weight_decay=1e-4),
    paramwise_cfg=dict(norm_decay_mult=0.0),
)
param_scheduler = [
    dict(type='vt.WarmUpLR', by_epoch=False, start_factor=0.001, length=1000),
    dict(type='vt.MultiStepLR', by_epoch=False, milestones=[60000, 80000], of=90000, gamma=0.1),
]

train_cfg = dict(type='IterBasedTrainLoop', max_iters=90000, val_interval=8000)
val_cfg = dict()
test_cfg = dict()
auto_scale_lr = dict(base_batch_size=32)
