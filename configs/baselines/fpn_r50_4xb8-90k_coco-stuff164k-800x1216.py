# ResNet-50 with FPN on COCO-Stuff with detectron2's recipe. Paper: mIoU 40.78 (table 9; detectron2's 54 classes, here
# MMSegmentation's 171). Not trained here yet.
# bash tools/dist_train.sh configs/baselines/fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py 4
_base_ = [
    '../_base_/models/fpn_r50-caffe.py',
    '../_base_/datasets/coco-stuff164k_800x1333.py',
    '../_base_/schedules/sgd_bs32-90k.py',
    '../_base_/segmentation_runtime.py',
]

model = dict(
    # images of a batch differ in size: they are padded to the largest, to a multiple of 32
    data_preprocessor=dict(size_divisor=32, test_cfg=dict(size_divisor=32)),
    decode_head=dict(num_classes=171),
)
speed = dict(cudnn_benchmark=False)  # for the same reason
