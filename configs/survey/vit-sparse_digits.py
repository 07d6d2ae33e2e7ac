# ViT-S with sparse attention on the embedded digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/vit-sparse_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/vit-sparse.py']

model = _base_.system
