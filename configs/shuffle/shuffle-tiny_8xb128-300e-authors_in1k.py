# Shuffle-T on ImageNet-1k as its authors trained it. Published: top-1 82.4; not trained here.
# Source: mulinmeng/Shuffle-Transformer 8ba81ea, config.py, configs/shuffle_vit_tiny_patch4_window7_224.yaml and its
# logs in output, of 8 GPUs.
# Remaining: none.
# bash tools/dist_train.sh configs/shuffle/shuffle-tiny_8xb128-300e-authors_in1k.py 8
_base_ = ['../_base_/recipes/swin_in1k.py', '../_base_/models/shuffle-tiny.py']

model = _base_.architecture
train_dataloader = dict(batch_size=128)
