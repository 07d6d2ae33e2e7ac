# The parts of the first version of the paper (arXiv 2006.03677v1). A config uses one of the two by `_base_.early_...`:
# all models have the same parts; the model itself is that of another base config.
early_tokenizer = dict(
    type='vt.FilterTokenizer',
    scale_logits=True,
    value_matrix=True,
    groups=16,
    position_encoder=dict(type='vt.PositionEncoder', size=14, downsamples=1),
)
early_relation = dict(type='vt.ValueTransformer', num_heads=16, groups=8)

# Classification: static tokenizer, transformer, then dynamic tokenizer, transformer; tokens are not written back.
early_backbone = dict(
    tokenizer=early_tokenizer,
    later_tokenizer=dict(
        type='vt.DynamicTokenizer',
        num_heads=16,
        groups=16,
        position_encoder=dict(type='vt.PositionEncoder', size=14, downsamples=1),
    ),
    relation=early_relation,
    projector=None,
)
# Segmentation: static tokenizer, transformer, projector.
early_neck = dict(
    tokenizer=early_tokenizer,
    relation=early_relation,
    projector=dict(type='vt.Projector', num_heads=16, scale_logits=True, value_matrix=True, groups=1, query_groups=16),
)
