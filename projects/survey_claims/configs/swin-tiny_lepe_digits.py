# Swin-T with LePE, a depthwise convolution of the values, instead of relative biases, on the embedded digits.
# Top-1 not measured yet.
# PYTHONPATH=. python tools/train.py projects/survey_claims/configs/swin-tiny_lepe_digits.py
_base_ = '../../../configs/swin/swin-tiny_digits.py'

windows = [dict(type='vt.Windows', window=7, shift=shift) for shift in (0, 3)]
attention = [dict(type='vt.WindowAttention', windows=each, local=dict(type='vt.OnMap')) for each in windows]
model = dict(backbone=dict(every_stage=dict(attention=attention)))
