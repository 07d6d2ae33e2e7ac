# ResNet-50 with VT-FPN on ADE20K with MMSegmentation's recipe of FPN, in which the loss is averaged over all pixels,
# also those without a label. Not trained here yet.
# Source: onedl-mmsegmentation 1.4.2, configs/sem_fpn/fpn_r50_4xb4-160k_ade20k-512x512.py.
# Remaining: none.
# bash tools/dist_train.sh configs/vt_fpn/vt-fpn_r50_4xb4-160k-mmseg_ade20k-512x512.py 4
_base_ = 'vt-fpn_r50_4xb4-160k_ade20k-512x512.py'

model = dict(decode_head=dict(loss_decode=dict(avg_non_ignore=False)))
