# ResNet-50 with VT-FPN on COCO-Stuff with the tuned recipe: docs/training.md.
# Not trained here yet.
# bash tools/dist_train.sh configs/vt_fpn/vt-fpn-tuned_r50_4xb8-90k_coco-stuff164k-800x1216.py 4
_base_ = [
    'vt-fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py',
    '../_base_/recipes/tuned_sgd.py',
]

optim_wrapper = dict(paramwise_cfg=_base_.tuned)
