# Swin-T on ImageNet-1k as its authors trained it. Published: top-1 81.3; not trained here.
# Source: microsoft/Swin-Transformer f82860b, get_started.md, config.py and
# configs/swin/swin_tiny_patch4_window7_224.yaml.
# Remaining: none.
# bash tools/dist_train.sh configs/swin/swin-tiny_8xb128-300e-authors_in1k.py 8
_base_ = ['../_base_/recipes/swin_in1k.py', '../_base_/models/swin-tiny.py']

model = _base_.architecture
train_dataloader = dict(batch_size=128)
