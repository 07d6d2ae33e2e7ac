# ResNet-50 with FPN on Cityscapes with MMSegmentation's schedule. Not trained here yet.
# bash tools/dist_train.sh configs/baselines/fpn_r50_4xb2-80k_cityscapes-512x1024.py 4
_base_ = [
    '../_base_/models/fpn_r50.py',
    '../_base_/datasets/cityscapes_512x1024.py',
    '../_base_/schedules/sgd_poly-80k.py',
    '../_base_/segmentation_runtime.py',
]

model = dict(data_preprocessor=dict(size=(512, 1024)), decode_head=dict(num_classes=19))
auto_scale_lr = dict(base_batch_size=8)
