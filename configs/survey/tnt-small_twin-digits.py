# TNT-S on the twin digits.
# Top-1 not measured yet.
# python tools/train.py configs/survey/tnt-small_twin-digits.py
_base_ = ['../_base_/survey/_twin-digits.py', '../_base_/survey/tnt-small.py']

model = _base_.system
model['backbone'] |= dict(_delete_=True, img_size=64)  # its name for image_size
