# A ResNet from scratch on any folder of images, with the optimizer and the schedule of the tuned VT-ResNets.
_base_ = ['../datasets/image_folder_bs32.py', '../schedules/adamw_bs32-15e.py', '../default_runtime.py']

optim_wrapper = dict(optimizer=dict(lr=4e-3))
train_cfg = dict(max_epochs=90)
