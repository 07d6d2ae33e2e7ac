# MMSegmentation's schedule: SGD, 0.01, a power of 0.9 down to 0.0001.
optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.01, momentum=0.9, weight_decay=5e-4))
param_scheduler = dict(type='PolyLR', by_epoch=False, power=0.9, eta_min=1e-4)

train_cfg = dict(type='IterBasedTrainLoop', max_iters=80000, val_interval=8000)
val_cfg = dict()
test_cfg = dict()
