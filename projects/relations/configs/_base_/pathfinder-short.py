# Pathfinder at 64x64: do two discs end the same path of 4 dashes? ResNet-18 solves it with four times the images.
_base_ = 'relations.py'

task = dict(type='vt.Pathfinder', length='short')
train_dataloader = dict(dataset=dict(num_images=2048, **task))
val_dataloader = dict(dataset=task)
test_dataloader = val_dataloader
