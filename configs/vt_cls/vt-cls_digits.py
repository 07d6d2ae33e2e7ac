# The small classifier with a class token on the embedded digits at 32x32. Not fully trained here yet.
# vt train vt-cls_digits seed=0
_base_ = [
    '../_base_/models/vt-cls_r18.py',
    '../_base_/datasets/digits_32x32.py',
    '../_base_/schedules/adamw_bs32-15e.py',
    '../_base_/default_runtime.py',
]

# The encoder starts slowly from scratch: three times the epochs.
train_cfg = dict(max_epochs=45)
