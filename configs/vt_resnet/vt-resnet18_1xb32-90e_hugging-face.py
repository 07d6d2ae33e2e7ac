# VT-ResNet-18 on images and labels of a data set that Hugging Face's library `datasets` saved.
# The recipe is that of image folders; load_from starts from trained weights.
# vt train vt-resnet18_1xb32-90e_hugging-face data=<folder> weights=<checkpoint>
_base_ = [
    '../_base_/models/vt-resnet18.py',
    '../_base_/datasets/hugging-face_bs32.py',
    '../_base_/schedules/sgd_bs256-90e_clip.py',
    '../_base_/default_runtime.py',
]

model = dict(head=dict(num_classes='auto', topk=(1,)))

# The recipe's 0.1 is for a batch of 256.
optim_wrapper = dict(optimizer=dict(lr=0.0125))
auto_scale_lr = dict(base_batch_size=32)
