# FPN on the relational scenes: is a digit's like somewhere else, far away?
# mIoU 58.28, 58.22, 57.63 % (seeds 0, 1, 2), 7.6 min: AMD EPYC, 1 threads, torch 2.14.1.
# python tools/train.py configs/baselines/fpn_r18_relational-scenes.py --cfg-options randomness.seed=0
_base_ = 'fpn_r18_digit-scenes.py'

model = dict(decode_head=dict(num_classes=3))

train_dataloader = dict(dataset=dict(type='vt.RelationalDigitScenes'))
val_dataloader = dict(dataset=dict(type='vt.RelationalDigitScenes'))
test_dataloader = val_dataloader
