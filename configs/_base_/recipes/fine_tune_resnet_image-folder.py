# A ResNet from weights on any folder of images. The backbone has a tenth of the learning rate.
_base_ = ['../datasets/image_folder_bs32.py', '../schedules/adamw_bs32-15e.py', '../default_runtime.py']

optim_wrapper = dict(paramwise_cfg=dict(custom_keys=dict(backbone=dict(lr_mult=0.1))))
train_cfg = dict(max_epochs=30)
