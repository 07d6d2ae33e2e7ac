# ResNet-18 on any folder of images, <data_root>/{train,val}/<class>/, with the optimizer of the tuned VT-ResNet-18.
_base_ = [
    '../../../configs/_base_/models/resnet18.py',
    '../../../configs/_base_/datasets/image_folder_bs32.py',
    '../../../configs/_base_/schedules/adamw_bs32-15e.py',
    '../../../configs/_base_/default_runtime.py',
]

model = dict(head=dict(num_classes='auto', topk=(1,)))
optim_wrapper = dict(optimizer=dict(lr=4e-3))
train_cfg = dict(max_epochs=90)
