# LV-ViT-S on the embedded digits, with labels of patches by a ResNet-18 from a file, without augmentation.
# Top-1 not measured yet.
# python tools/train.py configs/baselines/resnet18_digits.py
# python tools/analysis/label_maps.py configs/lv_vit/lv-vit-small_digits.py work_dirs/digits_label-maps.pth
# python tools/train.py configs/lv_vit/lv-vit-small_label-file_digits.py
_base_ = 'lv-vit-small_digits.py'

model = dict(teacher=None, teacher_checkpoint=None, label_file='work_dirs/digits_label-maps.pth')
train_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
