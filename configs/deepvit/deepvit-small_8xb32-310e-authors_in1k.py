# DeepViT-S on ImageNet-1k as its authors trained it. Published: top-1 82.3; not trained here.
# Source: zhoudaquan/dvit_repo 1ccb152, scripts/DeepViT_S_CNN_patch.yaml, train.py and
# models/deep_vision_transformer.py.
# Remaining: the number of GPUs is not public, here 8 of the 32 images in the file, which resumes a checkpoint that is
# not public.
# bash tools/dist_train.sh configs/deepvit/deepvit-small_8xb32-310e-authors_in1k.py 8
_base_ = ['../_base_/recipes/timm_half_in1k.py', '../_base_/models/deepvit-small.py']

model = _base_.architecture
optim_wrapper = dict(optimizer=dict(lr=5e-4))
param_scheduler = _base_.param_scheduler
param_scheduler[0]['start_factor'] = 2e-3
train_dataloader = dict(batch_size=32)
auto_scale_lr = dict(base_batch_size=256)
