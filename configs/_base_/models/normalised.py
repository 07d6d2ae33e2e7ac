# The Visual Transformer that is recommended for training: tokens are normalised before they are related and written
# back, logits divided by sqrt(d), and optimizers move the token-side matrices less. The same parameters and
# multiply-adds as without. Written down in docs/training.md: what was tried.
normalised = dict(
    step=0.3,
    relation=dict(norm_cfg=dict(type='LN', elementwise_affine=False), scale_logits=True),
    projector=dict(norm_cfg=dict(type='LN', elementwise_affine=False), scale_logits=True),
)
