# TNT-S on ImageNet-1k as its authors trained it. Published: top-1 81.5; not trained here.
# Source: huawei-noah/CV-Backbones 25531f7, tnt_pytorch/readme.md, train.py and tnt.py.
# Remaining: none.
# bash tools/dist_train.sh configs/tnt/tnt-small_8xb128-310e-authors_in1k.py 8
_base_ = ['../_base_/recipes/timm_half_in1k.py', '../_base_/models/tnt-small.py']

model = _base_.architecture
model['backbone']['init_cfg'] = [
    dict(type='TruncNormal', layer='Linear', std=0.02),
    dict(type='Constant', layer='LayerNorm', val=1.0, bias=0.0),
    dict(type='vt.LayerInit', layer='MultiheadAttention', std=0.02),  # Q, K and V, which PyTorch draws by Xavier
]
train_dataloader = dict(batch_size=128, sampler=dict(_delete_=True, type='RepeatAugSampler', num_repeats=3))
