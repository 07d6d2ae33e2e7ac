# Common settings of all models on Fashion-MNIST. No checkpoint is selected by score, since scores are on test images.
_base_ = [
    '../datasets/fashion-mnist_bs256.py',
    '../schedules/adamw_bs256-6e.py',
    '../default_runtime.py',
]

default_hooks = dict(checkpoint=dict(interval=6, max_keep_ckpts=1, save_best=None))
