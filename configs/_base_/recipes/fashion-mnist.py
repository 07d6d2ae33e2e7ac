# What all models have in common on Fashion-MNIST. No checkpoint is chosen by a score: that would be the test images'.
_base_ = [
    '../datasets/fashion-mnist_bs256.py',
    '../schedules/adamw_bs256-20e.py',
    '../default_runtime.py',
]

default_hooks = dict(checkpoint=dict(interval=5, max_keep_ckpts=1, save_best=None))
