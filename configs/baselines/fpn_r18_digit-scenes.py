# ResNet-18 of half the width with FPN on the embedded scenes.
# python tools/train.py configs/baselines/fpn_r18_digit-scenes.py --cfg-options randomness.seed=0
_base_ = [
    '../_base_/models/fpn_r18-half.py',
    '../_base_/datasets/digit-scenes.py',
    '../_base_/schedules/adamw_bs16-1k.py',
    '../_base_/segmentation_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=(128, 128)),
    decode_head=dict(
        num_classes=11,
        # Five pixels in six are background: at full weight they hold the digits back for hundreds of iterations.
        # MMSegmentation's loss takes class weights only where it averages over all pixels; here all have labels.
        loss_decode=dict(class_weight=[0.2] + [1.0] * 10, avg_non_ignore=False),
    ),
)

default_hooks = dict(checkpoint=dict(interval=500), visualization=dict(with_labels=False))
