# MViT's schedule on ImageNet: AdamW, batch 4096, 70 epochs of warm-up, cosine decay, 300 epochs, gradients clipped:
# facebookresearch/SlowFast 287ec00, configs/ImageNet/MVIT_B_16_CONV.yaml, 16 times its rates for 256 images.
optim_wrapper = dict(
    optimizer=dict(type='AdamW', lr=4e-3, weight_decay=0.05),  # 2.5e-4 for 256 images
    clip_grad=dict(max_norm=1.0),
    paramwise_cfg=dict(norm_decay_mult=0.0, bias_decay_mult=0.0, flat_decay_mult=0.0),
)
param_scheduler = [
    dict(type='vt.WarmUpLR', start_factor=4e-5, by_epoch=True, length=70, convert_to_iter_based=True),
    dict(type='vt.CosineAnnealingLR', eta_min=1.6e-5, by_epoch=True, begin=70, convert_to_iter_based=True),
]

train_cfg = dict(by_epoch=True, max_epochs=300, val_interval=1)
val_cfg = dict()
test_cfg = dict()

auto_scale_lr = dict(base_batch_size=4096)
