# What the survey's systems have in common on ImageNet-1k: DeiT's recipe.
_base_ = [
    'datasets/imagenet_bs64_randaugment.py',
    'schedules/adamw_bs1024-300e.py',
    'default_runtime.py',
]
