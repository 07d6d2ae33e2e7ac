# MSG-T on ImageNet-1k as its authors trained it. Published: top-1 80.9; not trained here.
# Source: hustvl/MSG-Transformer dcb8dc3, README.md, configs/config.py, configs/msg_tiny_p4_win7_224.yaml and
# models/msg_transformer.py.
# Remaining: none.
# bash tools/dist_train.sh configs/msg/msg-tiny_8xb128-300e-authors_in1k.py 8
_base_ = ['../_base_/recipes/swin_in1k.py', '../_base_/models/msg-tiny.py']

model = _base_.architecture
train_dataloader = dict(batch_size=128)
keys = ('bias.from_messenger', 'bias.to_messenger')
optim_wrapper = dict(paramwise_cfg=dict(custom_keys={key: dict(decay_mult=0.0) for key in keys}))
