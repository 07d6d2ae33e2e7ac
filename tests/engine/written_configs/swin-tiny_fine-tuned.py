# Swin-T from timm's weights of ImageNet-1k on any folder of images, <data_root>/{train,val}/<class>/.
_base_ = ['../../../configs/_base_/recipes/fine_tune_image-folder.py', '../../../configs/_base_/models/swin-tiny.py']

model = _base_.architecture
load_from = 'timm://swin_tiny_patch4_window7_224.ms_in1k'  # fetched when the training starts (pip install timm)
