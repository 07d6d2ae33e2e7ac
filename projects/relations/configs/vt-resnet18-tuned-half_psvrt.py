# VT-ResNet-18 at half width, with the tuned recipe, on PSVRT. Scores: ../README.md.
# Top-1 92.63, 90.58, 90.53 % (seeds 0, 1, 2), 4.4 min, bfloat16: Intel(R) Xeon(R) Processor, 1 thread, torch 2.14.1.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-tuned-half_psvrt.py
_base_ = [
    'vt-resnet18-half_psvrt.py',
    '../../../configs/_base_/recipes/tuned_adamw.py',
]

optim_wrapper = dict(paramwise_cfg=_base_.tuned)
