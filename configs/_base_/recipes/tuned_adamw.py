# The recipe that trains best of those tried (docs/training.md): the published network with AdamW, the matrices of its
# tokens at 0.03 of the learning rate, all else at four times the usual one. A part is named as in its parameters.
# AdamW multiplies the decay by the rate, so the decay is divided by 0.03. So is eps, which slows keys and queries while
# their gradients are that small.
token_side = dict(lr_mult=0.03, decay_mult=1 / 0.03, eps=1e-8 / 0.03)
tuned = dict(custom_keys=dict(tokenizer=token_side, relation=token_side, projector=token_side))
