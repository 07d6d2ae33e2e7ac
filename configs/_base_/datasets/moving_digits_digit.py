# The twin of the moving digits: the same frames, and the class is the digit, which any one frame tells (10 classes).
_base_ = 'moving_digits.py'

data_preprocessor = dict(num_classes=10)
train_dataloader = dict(dataset=dict(task='digit'))
val_dataloader = dict(dataset=dict(task='digit'))
test_dataloader = val_dataloader
