# Pathfinder at 64x64: do two discs end the same path of 7 dashes?
_base_ = 'relations.py'

task = dict(type='vt.Pathfinder', length='long')
train_dataloader = dict(dataset=task)
val_dataloader = dict(dataset=task)
test_dataloader = val_dataloader
