# ELSA-Swin-T on ImageNet-1k as its authors trained it. Published: top-1 82.7; not trained here.
# Source: damo-cv/ELSA f3b7ac7, README.md (Swin's hyper-parameters without a change) and cls/models/elsa_swin.py.
# Remaining: the command is not public; the defaults of cls/train.py are VOLO's.
# bash tools/dist_train.sh configs/elsa/elsa-swin-tiny_8xb128-300e-authors_in1k.py 8
_base_ = ['../_base_/recipes/swin_in1k.py', '../_base_/models/elsa-swin-tiny.py']

model = _base_.architecture
model['backbone']['drop_path_rate'] = 0.1
train_dataloader = dict(batch_size=128)
optim_wrapper = dict(paramwise_cfg=dict(custom_keys={'bias.table': dict(decay_mult=1.0)}))  # timm's optimizer decays it
