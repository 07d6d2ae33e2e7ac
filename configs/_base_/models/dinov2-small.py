# DINOv2-S/14 of Hugging Face, frozen: a map of 384 channels, a 14th of the image's sides.
architecture = dict(
    backbone=dict(
        type='vt.FrozenBackbone',
        backbone=dict(
            type='vt.HuggingFaceBackbone',
            pretrained='facebook/dinov2-small',
            config=dict(model_type='dinov2', hidden_size=384, num_attention_heads=6, patch_size=14, image_size=518),
        ),
    )
)
