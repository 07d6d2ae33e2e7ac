# MViTv2-T (Li et al., CVPR 2022): pooled queries downsample the grid from stage to stage, keys and values are pooled,
# relative positions are decomposed, and the pooled queries are added to the attention output.
architecture = dict(
    backbone=dict(type='vt.MViT', arch='v2-tiny', class_tokens=0, drop_path_rate=0.1),
    head=dict(in_channels=768),
)
