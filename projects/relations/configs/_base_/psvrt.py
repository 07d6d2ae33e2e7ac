# Two patterns of 3x3 bits, the same or not, at 16x16; on larger images ResNet-18 learns nothing of as many.
_base_ = 'relations.py'

task = dict(type='vt.PSVRT', item_size=3, image_size=16)
train_dataloader = dict(dataset=dict(num_images=16384, **task))
val_dataloader = dict(dataset=task)
test_dataloader = val_dataloader
