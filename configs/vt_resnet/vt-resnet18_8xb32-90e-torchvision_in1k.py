# VT-ResNet-18 on ImageNet-1k with torchvision's recipe of ResNets: a weight decay of 1e-4, the paper's is 4e-5.
# Not trained here yet.
# Source: pytorch/vision 017e9b9, references/classification/train.py.
# Remaining: gradients are clipped at 1; images are resized by OpenCV.
# bash tools/dist_train.sh configs/vt_resnet/vt-resnet18_8xb32-90e-torchvision_in1k.py 8
_base_ = 'vt-resnet18_8xb32-90e_in1k.py'

optim_wrapper = dict(optimizer=dict(weight_decay=1e-4))
