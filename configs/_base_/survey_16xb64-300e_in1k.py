# What the survey's systems have in common: DeiT's recipe on ImageNet-1k.
_base_ = [
    'models/token-backbone.py',
    'datasets/imagenet_bs64_randaugment.py',
    'schedules/adamw_bs1024-300e.py',
    'default_runtime.py',
]
