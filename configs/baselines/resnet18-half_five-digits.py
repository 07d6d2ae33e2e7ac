# ResNet-18 at half width on the digits 0 to 4, for the initial weights of other models. Scores: docs/training.md.
# vt train resnet18-half_five-digits seed=0
_base_ = 'resnet18-half_digits.py'

train_dataloader = dict(dataset=dict(digits=[0, 1, 2, 3, 4]))
val_dataloader = dict(dataset=dict(digits=[0, 1, 2, 3, 4]))
test_dataloader = val_dataloader
