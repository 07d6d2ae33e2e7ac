# VT-ResNet-18 on images with several labels each, listed in <data_root>/train.csv and val.csv, with the tuned recipe.
# python tools/train.py configs/vt_resnet/vt-resnet18-tuned_1xb32-90e_multi-label.py \
#     --cfg-options data_root=<folder>
_base_ = [
    '../_base_/models/vt-resnet18.py',
    '../_base_/datasets/multi_label_bs32.py',
    '../_base_/recipes/tuned_bs32-90e.py',
    '../_base_/default_runtime.py',
]

model = dict(head=dict(_delete_=True, type='MultiLabelLinearClsHead', num_classes='auto', in_channels=1024))
