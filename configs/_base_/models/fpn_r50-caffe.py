# ResNet-50 with FPN, with detectron2's ResNet-50 (strides in the 1x1 convolutions, BGR images that keep their range).
_base_ = 'fpn_r50.py'

model = dict(
    data_preprocessor=dict(mean=[103.53, 116.28, 123.675], std=[1.0, 1.0, 1.0], bgr_to_rgb=False),
    backbone=dict(type='ResNet', style='caffe', init_cfg=dict(checkpoint='open-mmlab://detectron2/resnet50_caffe')),
)
