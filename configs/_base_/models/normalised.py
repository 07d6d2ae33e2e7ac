# A Visual Transformer that trains better, as far as the search goes (docs/training.md): tokens are normalised before
# they are related and written back, logits divided by sqrt(d), and optimizers move the token-side matrices less. The
# same parameters and multiply-adds as without.
normalised = dict(
    step=0.3,
    relation=dict(norm_cfg=dict(type='LN', elementwise_affine=False), scale_logits=True),
    projector=dict(norm_cfg=dict(type='LN', elementwise_affine=False), scale_logits=True),
)
