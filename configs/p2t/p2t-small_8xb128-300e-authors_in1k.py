# P2T-S on ImageNet-1k as its authors trained it. Published: top-1 82.4; not trained here.
# Source: yuhuan-wu/P2T acd5e64, README.md and main.py.
# Remaining: none.
# bash tools/dist_train.sh configs/p2t/p2t-small_8xb128-300e-authors_in1k.py 8
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/p2t-small.py']

model = _base_.architecture
param_scheduler = _base_.param_scheduler
param_scheduler[0]['length'] = param_scheduler[1]['begin'] = 20
train_dataloader = dict(batch_size=128)
