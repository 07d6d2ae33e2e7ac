# ResNet-50 with FPN on ADE20K with MMSegmentation's schedule. Not trained here yet.
# bash tools/dist_train.sh configs/baselines/fpn_r50_4xb4-160k_ade20k-512x512.py 4
_base_ = [
    '../_base_/models/fpn_r50.py',
    '../_base_/datasets/ade20k_512x512.py',
    '../_base_/schedules/sgd_poly-160k.py',
    '../_base_/segmentation_runtime.py',
]

model = dict(data_preprocessor=dict(size=(512, 512)), decode_head=dict(num_classes=150))
auto_scale_lr = dict(base_batch_size=16)
