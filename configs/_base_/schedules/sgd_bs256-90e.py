# The paper's default recipe (section 5.1): SGD, batch 256, 0.1 x0.1 every 30 epochs, 90 epochs.
optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=4e-5))
param_scheduler = dict(
    type='vt.MultiStepLR', by_epoch=True, milestones=[30, 60], of=90, gamma=0.1, convert_to_iter_based=True
)

train_cfg = dict(by_epoch=True, max_epochs=90, val_interval=1)
val_cfg = dict()
test_cfg = dict()

auto_scale_lr = dict(base_batch_size=256)
