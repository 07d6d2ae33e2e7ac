# VT-ResNet-18 on any folder of images, <data_root>/{train,val}/<class>/, with the tuned recipe: docs/training.md.
_base_ = [
    '../../../configs/_base_/models/vt-resnet18.py',
    '../../../configs/_base_/datasets/image_folder_bs32.py',
    '../../../configs/_base_/recipes/tuned_bs32-90e.py',
    '../../../configs/_base_/default_runtime.py',
]

model = dict(head=dict(num_classes='auto', topk=(1,)))
