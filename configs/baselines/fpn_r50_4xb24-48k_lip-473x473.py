# ResNet-50 with FPN on LIP. Paper: mIoU 47.04 (table 10). SGD, learning rate 0.01, weight decay 0.0005 and batch 96 are
# those of the paper; 48,000 iterations (150 epochs) and a power of 0.9 are common for LIP. Not trained here yet.
# bash tools/dist_train.sh configs/baselines/fpn_r50_4xb24-48k_lip-473x473.py 4
_base_ = [
    '../_base_/models/fpn_r50-caffe.py',
    '../_base_/datasets/lip_473x473.py',
    '../_base_/schedules/sgd_poly-80k.py',
    '../_base_/segmentation_runtime.py',
]

model = dict(data_preprocessor=dict(size=(473, 473)), decode_head=dict(num_classes=20))

train_cfg = dict(max_iters=48000)
auto_scale_lr = dict(base_batch_size=96)
