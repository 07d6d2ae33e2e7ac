# CaiT-S24 on ImageNet-1k as its authors trained it. Published: top-1 82.7; not trained here.
# Source: facebookresearch/deit 7e160fe, README_cait.md and main.py; 400 epochs are from its commit 542e05e.
# Remaining: the command is not public: rate, batch and stochastic depth are main.py's.
# bash tools/dist_train.sh configs/cait/cait-s24_16xb64-400e-authors_in1k.py 16
_base_ = ['../_base_/recipes/deit_in1k.py', '../_base_/models/cait-s24.py']

model = _base_.architecture
train_cfg = dict(max_epochs=400)
test_pipeline = _base_.test_pipeline
test_pipeline[1]['scale'] = 224  # the whole of the short edge
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
