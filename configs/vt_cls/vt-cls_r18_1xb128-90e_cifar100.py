# The small classifier with a class token on CIFAR-100. Not trained here yet.
# vt train vt-cls_r18_1xb128-90e_cifar100
_base_ = [
    '../_base_/models/vt-cls_r18.py',
    '../_base_/datasets/cifar100_bs128.py',
    '../_base_/schedules/sgd_bs256-90e.py',
    '../_base_/default_runtime.py',
]

model = dict(head=dict(num_classes=100))

# The recipe's 0.1 is for a batch of 256.
optim_wrapper = dict(optimizer=dict(lr=0.05))
auto_scale_lr = dict(base_batch_size=128)
