# Six outlines, three pairs or two triples: problem 7 of the synthetic visual reasoning test at 64x64; ResNet-18 learns
# nothing of a quarter of as many.
_base_ = 'relations.py'

task = dict(type='vt.SVRT', problem=7)
train_dataloader = dict(dataset=dict(num_images=32768, **task))
val_dataloader = dict(dataset=task)
test_dataloader = val_dataloader
