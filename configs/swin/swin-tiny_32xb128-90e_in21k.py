# Swin-T on ImageNet-21k, 21,841 classes, in Arrow files, with the authors' schedule; not trained here.
# Source: microsoft/Swin-Transformer f82860b, configs/swin/swin_tiny_patch4_window7_224_22k.yaml.
# data/imagenet21k: docs/how-to/many-images.md makes it of class folders.
# bash tools/dist_train.sh configs/swin/swin-tiny_32xb128-90e_in21k.py 32
_base_ = ['../_base_/recipes/swin_in1k.py', '../_base_/models/swin-tiny.py']

data_root = 'data/imagenet21k'
data_preprocessor = dict(num_classes=21841)
rows = dict(_delete_=True, type='vt.HuggingFaceDataset', data_root=data_root)
train_dataloader = dict(batch_size=128, dataset=dict(**rows, split='train', pipeline={{_base_.train_pipeline}}))
val_dataloader = dict(batch_size=128, dataset=dict(**rows, split='val', pipeline={{_base_.test_pipeline}}))
test_dataloader = val_dataloader

model = _base_.architecture
model['backbone']['drop_path_rate'] = 0.1
model['head']['num_classes'] = 21841

param_scheduler = _base_.param_scheduler
param_scheduler[0]['length'] = param_scheduler[1]['begin'] = 5
train_cfg = dict(max_epochs=90)
auto_scale_lr = dict(base_batch_size=4096)
