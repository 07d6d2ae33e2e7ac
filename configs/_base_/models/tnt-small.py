# TNT-S (Han et al., NeurIPS 2021), MMPretrain's code: with an inner transformer within each patch.
architecture = dict(
    backbone=dict(type='TNT', arch='s', img_size=224, patch_size=16, drop_path_rate=0.1, first_stride=4),
)
