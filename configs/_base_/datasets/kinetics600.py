# Kinetics-600, as Kinetics-400: data/kinetics600/{train.csv,val.csv,train/,val/}.
_base_ = 'kinetics400.py'

data_preprocessor = dict(num_classes=600)
data_root = 'data/kinetics600'
train_dataloader = dict(dataset=dict(data_root=data_root))
val_dataloader = dict(dataset=dict(data_root=data_root))
test_dataloader = dict(dataset=dict(data_root=data_root))
