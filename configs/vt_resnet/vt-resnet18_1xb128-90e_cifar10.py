# VT-ResNet-18 on CIFAR-10. Not trained here yet.
# vt train vt-resnet18_1xb128-90e_cifar10
_base_ = [
    '../_base_/models/vt-resnet18.py',
    '../_base_/datasets/cifar10_bs128.py',
    '../_base_/schedules/sgd_bs256-90e_clip.py',
    '../_base_/default_runtime.py',
]

# Stage 3 keeps its size: a 32x32 image would leave 2x2 pixels for stage 5.
model = dict(
    backbone=dict(strides=(1, 1, 2)),
    head=dict(num_classes=10, topk=(1,)),
)

# The recipe's 0.1 is for a batch of 256.
optim_wrapper = dict(optimizer=dict(lr=0.05))
auto_scale_lr = dict(base_batch_size=128)
