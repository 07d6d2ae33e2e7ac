# Two patterns of 4x4 bits, the same or not, at 32x32.
_base_ = 'relations.py'

task = dict(type='vt.PSVRT', item_size=4, image_size=32)
train_dataloader = dict(dataset=task)
val_dataloader = dict(dataset=task)
test_dataloader = val_dataloader
