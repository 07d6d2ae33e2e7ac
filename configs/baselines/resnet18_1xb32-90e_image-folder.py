# ResNet-18 on any folder of images, <data_root>/{train,val}/<class>/, with VT-ResNet-18's recipe.
# vt train resnet18_1xb32-90e_image-folder data=<folder>
_base_ = [
    '../_base_/models/resnet18.py',
    '../_base_/datasets/image_folder_bs32.py',
    '../_base_/schedules/sgd_bs256-90e_clip.py',
    '../_base_/default_runtime.py',
]

model = dict(head=dict(num_classes='auto', topk=(1,)))

# The recipe's 0.1 is for a batch of 256.
optim_wrapper = dict(optimizer=dict(lr=0.0125))
auto_scale_lr = dict(base_batch_size=32)
