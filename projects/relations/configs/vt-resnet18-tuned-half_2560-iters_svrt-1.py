# VT-ResNet-18 at half width with the tuned recipe. Scores by rate and by number of images: ../README.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-tuned-half_2560-iters_svrt-1.py
_base_ = [
    'vt-resnet18-half_2560-iters_svrt-1.py',
    '../../../configs/_base_/recipes/tuned_adamw.py',
]

optim_wrapper = dict(paramwise_cfg=_base_.tuned)
