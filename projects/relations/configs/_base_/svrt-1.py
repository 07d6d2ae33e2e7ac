# Two outlines, the same or not: problem 1 of the synthetic visual reasoning test at 64x64; ResNet-18 learns nothing of
# half as many.
_base_ = 'relations.py'

task = dict(type='vt.SVRT', problem=1)
train_dataloader = dict(dataset=dict(num_images=16384, **task))
val_dataloader = dict(dataset=task)
test_dataloader = val_dataloader
