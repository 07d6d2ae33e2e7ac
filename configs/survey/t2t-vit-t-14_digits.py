# T2T-ViT_t-14 on the embedded digits.
# Top-1 98.61 % (seeds 0), 6.3 min, bfloat16: AMD EPYC, 1 threads, torch 2.14.1.
# python tools/train.py configs/survey/t2t-vit-t-14_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/t2t-vit-t-14.py']

model = _base_.system
