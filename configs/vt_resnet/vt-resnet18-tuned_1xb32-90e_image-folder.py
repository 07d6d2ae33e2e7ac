# VT-ResNet-18 on any folder of images, <data_root>/{train,val}/<class>/, with the tuned recipe: docs/training.md.
# python tools/train.py configs/vt_resnet/vt-resnet18-tuned_1xb32-90e_image-folder.py \
#     --cfg-options data_root=<folder>
_base_ = [
    '../_base_/models/vt-resnet18.py',
    '../_base_/datasets/image_folder_bs32.py',
    '../_base_/recipes/tuned_bs32-90e.py',
    '../_base_/default_runtime.py',
]

model = dict(head=dict(num_classes='auto', topk=(1,)))
