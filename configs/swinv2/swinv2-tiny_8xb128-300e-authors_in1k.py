# Swin v2-T at 256x256 on ImageNet-1k as its authors trained it. Published: top-1 81.8; not trained here.
# Source: microsoft/Swin-Transformer f82860b, config.py and configs/swinv2/swinv2_tiny_patch4_window8_256.yaml.
# Remaining: none.
# bash tools/dist_train.sh configs/swinv2/swinv2-tiny_8xb128-300e-authors_in1k.py 8
_base_ = 'swinv2-tiny_16xb64-300e_in1k.py'

train_dataloader = dict(batch_size=128, sampler=dict(_delete_=True, type='DefaultSampler', shuffle=True))
optim_wrapper = dict(clip_grad=dict(max_norm=5.0))
param_scheduler = _base_.param_scheduler
param_scheduler[0]['length'] = param_scheduler[1]['begin'] = 20
