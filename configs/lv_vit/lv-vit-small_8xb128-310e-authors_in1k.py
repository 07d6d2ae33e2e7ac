# LV-ViT-S on ImageNet-1k as its authors trained it. Published: top-1 83.3; not trained here.
# Source: zihangJiang/TokenLabeling 9dbfd59, README.md, main.py, tlt/loss/cross_entropy.py and tlt/data/mixup.py.
# Remaining: labels are a ResNet-50's of the augmented image, theirs NFNet-F6's of the whole image, cut as the crop
# is; their class token learns that file's label of the crop, ours the image's; their smoothed labels sum to 1 + s/K.
# bash tools/dist_train.sh configs/lv_vit/lv-vit-small_8xb128-310e-authors_in1k.py 8
_base_ = ['../_base_/recipes/timm_in1k.py', '../_base_/models/lv-vit-small.py']

model = _base_.architecture
model |= dict(label_smoothing=0.1, patch_weight=1.0)
optim_wrapper = dict(optimizer=dict(lr=1.6e-3))
param_scheduler = _base_.param_scheduler
param_scheduler[0]['start_factor'] = 6.25e-4
train_dataloader = dict(batch_size=128)
custom_hooks = [dict(type='EMAHook', momentum=8e-5, update_buffers=True)]
