# Ten epochs at four times the rate, which is better for ResNet-18 and for VT on tasks of relations.
_base_ = '../../../../configs/_base_/schedules/adamw_bs32-10e.py'

optim_wrapper = dict(optimizer=dict(lr=4e-3))
