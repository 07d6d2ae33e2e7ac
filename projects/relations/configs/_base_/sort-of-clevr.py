# Sort-of-CLEVR at 64x64: questions on how one of six shapes relates to the others.
_base_ = 'relations.py'

data_preprocessor = dict(num_classes=10, to_rgb=True)

task = dict(type='vt.SortOfCLEVR', kind='relational')
train_dataloader = dict(dataset=task)
val_dataloader = dict(dataset=task)
test_dataloader = val_dataloader
