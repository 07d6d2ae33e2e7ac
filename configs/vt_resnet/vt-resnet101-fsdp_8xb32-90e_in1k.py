# VT-ResNet-101 on ImageNet-1k with the paper's default recipe, with weights sharded over the processes.
# Not trained here yet.
# bash tools/dist_train.sh configs/vt_resnet/vt-resnet101-fsdp_8xb32-90e_in1k.py 8
_base_ = ['vt-resnet101_8xb32-90e_in1k.py', '../_base_/strategies/fsdp.py']

# A process has a part of the gradient only, not the norm of all of it.
optim_wrapper = dict(clip_grad=None)
