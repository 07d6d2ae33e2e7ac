# Distillation of the paper's advanced recipe (section 5.2) for a classifier: a leaf config sets
# `model = _base_.distilled`, which is merged into its model.
#
# From the paper: the teacher (FBNetV3-G), the weights 0.8 and 0.2 of the losses, SyncBN, stochastic depth with a
# survival probability of 0.9, dropout 0.2, label smoothing. The paper does not give
# - the temperature (here 1) and the label smoothing (here 0.1);
# - which blocks are dropped: here the last one with 0.1, those before it linearly less, as in the paper it cites;
# - the image that the teacher sees: here the student's; teacher_size=240 is the size that timm trained it at.
# The weights were trained by timm, not by the authors; they are downloaded when training starts.
#
# Needs timm: pip install timm. Any other classifier can be the teacher:
#   teacher=dict(_delete_=True, type='ImageClassifier', ...), teacher_checkpoint='its weights.pth'
distilled = dict(
    type='vt.DistilledClassifier',
    teacher=dict(
        type='TimmClassifier',
        model_name='fbnetv3_g',
        pretrained=True,
        data_preprocessor=dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], to_rgb=True),
    ),
    distillation_weight=0.8,
    cls_weight=0.2,
    backbone=dict(norm_cfg=dict(type='SyncBN'), drop_path_rate=0.1),
    head=dict(
        type='vt.DropoutLinearClsHead',
        dropout=0.2,
        loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'),
    ),
)
