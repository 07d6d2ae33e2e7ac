# The paper's advanced recipe (section 5.2): RMSprop, batch 2048, 0.01 up to 0.16 in 5 epochs, then x0.9875 an epoch,
# 400 epochs, weights averaged with a decay of 0.99985.
# The paper leaves open the rest of RMSprop: smoothing, momentum, epsilon and weight decay are those of MMPretrain's and
# torchvision's MobileNetV3, where epsilon stands outside the root (0.0316 is the root of TensorFlow's 0.001).
optim_wrapper = dict(
    optimizer=dict(type='RMSprop', lr=0.16, alpha=0.9, momentum=0.9, eps=0.0316, weight_decay=1e-5),
)
param_scheduler = [
    dict(type='vt.WarmUpLR', start_factor=0.0625, by_epoch=True, length=5, convert_to_iter_based=True),
    dict(type='vt.ExponentialLR', gamma=0.9875, of=400, by_epoch=True, begin=5),
]
# BN's statistics belong to the weights that they were seen with: they are averaged too.
custom_hooks = [dict(type='EMAHook', momentum=1.5e-4, update_buffers=True)]

train_cfg = dict(by_epoch=True, max_epochs=400, val_interval=1)
val_cfg = dict()
test_cfg = dict()

auto_scale_lr = dict(base_batch_size=2048)
