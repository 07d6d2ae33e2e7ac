# Ten epochs of small data: AdamW, one epoch of warm-up, cosine decay.
_base_ = 'adamw_bs32-15e.py'

train_cfg = dict(max_epochs=10)
