# Six epochs of small data in bfloat16: AdamW, one epoch of warm-up, cosine decay, a validation at the end.
_base_ = 'adamw_bs32-15e.py'

optim_wrapper = dict(type='vt.BFloat16AmpOptimWrapper', clip_grad=dict(max_norm=1.0))
train_cfg = dict(max_epochs=6, val_interval=6)
auto_scale_lr = dict(base_batch_size=256)
