# VT-ResNet-18 on images with several labels each, listed in <data_root>/train.csv and val.csv.
# vt train vt-resnet18_1xb32-90e_multi-label data=<folder>
_base_ = [
    '../_base_/models/vt-resnet18.py',
    '../_base_/datasets/multi_label_bs32.py',
    '../_base_/schedules/sgd_bs256-90e_clip.py',
    '../_base_/default_runtime.py',
]

model = dict(head=dict(_delete_=True, type='MultiLabelLinearClsHead', num_classes='auto', in_channels=1024))

# The recipe's 0.1 is for a batch of 256.
optim_wrapper = dict(optimizer=dict(lr=0.0125))
auto_scale_lr = dict(base_batch_size=32)
