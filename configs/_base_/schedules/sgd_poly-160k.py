_base_ = 'sgd_poly-80k.py'

train_cfg = dict(max_iters=160000, val_interval=8000)
