# CIFAR-100, 32x32. Expected in data/cifar100; with download=True in each data set, MMPretrain downloads it.
_base_ = 'cifar10_bs128.py'

data_root = 'data/cifar100'

data_preprocessor = dict(num_classes=100, mean=[129.304, 124.070, 112.434], std=[68.170, 65.392, 70.418])

train_dataloader = dict(dataset=dict(type='CIFAR100', data_root=data_root))
val_dataloader = dict(dataset=dict(type='CIFAR100', data_root=data_root))
test_dataloader = val_dataloader
