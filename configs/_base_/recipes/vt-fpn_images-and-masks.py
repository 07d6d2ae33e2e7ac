# VT-FPN on any folder of images and masks, with the tuned recipe: docs/training.md.
_base_ = ['../datasets/images-and-masks_512x512.py', 'tuned_bs4-20k.py', '../segmentation_runtime.py']

default_hooks = dict(checkpoint=dict(interval=2000))
