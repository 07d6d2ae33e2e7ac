# VT-ResNet-18 on images and labels of a data set that Hugging Face's library `datasets` saved, with the tuned
# recipe: docs/training.md.
# vt train vt-resnet18-tuned_1xb32-90e_hugging-face data=<folder>
_base_ = [
    '../_base_/models/vt-resnet18.py',
    '../_base_/datasets/hugging-face_bs32.py',
    '../_base_/recipes/tuned_bs32-90e.py',
    '../_base_/default_runtime.py',
]

model = dict(head=dict(num_classes='auto', topk=(1,)))
