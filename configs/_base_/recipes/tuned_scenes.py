# As tuned_adamw.py, for VT-FPN on the embedded scenes, whose schedule has a tenth of the rate for the token-side
# matrices already, decay included: three tenths of that.
token_side = dict(lr_mult=0.03, decay_mult=1 / 0.3, eps=1e-8 / 0.3)
tuned = dict(custom_keys={'neck.tokenizers': token_side, 'neck.relation': token_side, 'neck.projectors': token_side})
