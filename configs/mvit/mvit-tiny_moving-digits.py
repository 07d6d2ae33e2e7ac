# A small MViT on the moving digits, whose classes are the digit that moves first and the directions of both.
# Top-1 100.00, 100.00, 100.00 % (seeds 0, 1, 2), 1.1 min: AMD EPYC, 1 thread, torch 2.14.1.
# vt train mvit-tiny_moving-digits
_base_ = ['../_base_/recipes/mvit_moving-digits.py', '../_base_/datasets/moving-digits.py']

# Three scales of 4x8x8, 4x4x4 and 4x2x2 cubes.
model = dict(backbone=dict(arch=dict(channels=32, depths=(1, 2, 2)), key_value_stride=4))
