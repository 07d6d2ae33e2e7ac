# The recommended recipe for one's own images: tuned_adamw.py for 90 epochs of batches of 32.
_base_ = ['../schedules/adamw_bs32-15e.py', 'tuned_adamw.py']

optim_wrapper = dict(optimizer=dict(lr=4e-3), paramwise_cfg=_base_.tuned)
train_cfg = dict(max_epochs=90)
