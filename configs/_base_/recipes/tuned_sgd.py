# As tuned_adamw.py, with SGD: the token-side matrices at 0.3 * 0.3 of the learning rate, since SGD's steps, unlike
# Adam's, grow with the gradient.
token_side = dict(lr_mult=0.09, decay_mult=1 / 0.09)
tuned = dict(custom_keys=dict(tokenizer=token_side, relation=token_side, projector=token_side))
