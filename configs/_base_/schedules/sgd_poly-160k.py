_base_ = 'sgd_poly-80k.py'

param_scheduler = dict(end=160000)
train_cfg = dict(max_iters=160000, val_interval=8000)
