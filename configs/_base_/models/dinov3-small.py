# DINOv3-S/16 of Hugging Face, frozen: a map of 384 channels, a 16th of the image's sides. Its weights are for those who
# accept their licence there.
architecture = dict(
    backbone=dict(
        type='vt.FrozenBackbone',
        backbone=dict(
            type='vt.HuggingFaceBackbone',
            pretrained='facebook/dinov3-vits16-pretrain-lvd1689m',
            config=dict(model_type='dinov3_vit', hidden_size=384, intermediate_size=1536, num_register_tokens=4),
        ),
    )
)
