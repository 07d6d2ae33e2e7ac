# TNT-S on ImageNet-1k as its authors trained it. Published: top-1 81.5; not trained here.
# Source: huawei-noah/CV-Backbones 25531f7, tnt_pytorch/readme.md, train.py and tnt.py.
# Remaining: none.
# bash tools/dist_train.sh configs/tnt/tnt-small_8xb128-310e-authors_in1k.py 8
_base_ = ['../_base_/recipes/timm_half_in1k.py', '../_base_/models/tnt-small.py']

model = _base_.architecture
train_dataloader = dict(batch_size=128, sampler=dict(_delete_=True, type='RepeatAugSampler', num_repeats=3))
