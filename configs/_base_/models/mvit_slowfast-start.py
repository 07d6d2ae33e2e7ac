# PySlowFast's initialisation of MViT (facebookresearch/SlowFast 287ec00, slowfast/models/video_model_builder.py):
# biases of matrices, normalisations and the head at 0.02, weights of matrices and convolutions at a standard deviation
# of 0.02. A leaf config adds this file to its _base_, and sets `model = _base_.slowfast_start`.
matrices = dict(type='TruncNormal', layer='Linear', std=0.02, bias=0.02)

slowfast_start = dict(
    backbone=dict(
        layer_inits=[
            matrices,
            dict(type='Constant', layer='LayerNorm', val=1.0, bias=0.02),
            dict(type='vt.LayerInit', layer=['Conv2d', 'Conv3d', 'TokenPooling'], std=0.02),
        ],
    ),
    head=dict(init_cfg=matrices),
)
