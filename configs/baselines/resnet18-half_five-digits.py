# ResNet-18 of half the width on the digits 0 to 4 alone, to start other models from. Scores: docs/training.md.
# python tools/train.py configs/baselines/resnet18-half_five-digits.py --cfg-options randomness.seed=0
_base_ = 'resnet18-half_digits.py'

train_dataloader = dict(dataset=dict(digits=[0, 1, 2, 3, 4]))
val_dataloader = dict(dataset=dict(digits=[0, 1, 2, 3, 4]))
test_dataloader = val_dataloader
