"""Formats of single-scale transformers: ViT, DeiT, CaiT, T2T-ViT, CeiT, LocalViT, DeepViT, LV-ViT, PS-ViT, TNT ..."""

import torch

from .table import BLOCK, HF_BLOCK, MM_BLOCK, Format, Rules, State

PLAIN: Rules = (
    (r'^cls_token', 'stages.0.class_tokens'),
    (r'^dist_token', 'stages.0.distillation_token'),
    (r'^patch_embed\.proj(ection)?\.', 'stages.0.embed.projection.'),
    (r'^pos_embed', 'stages.0.position.vectors'),
    (r'^norm\.', 'stages.0.norm.'),
    (r'^blocks\.', 'stages.0.blocks.'),
    *BLOCK,
)
STEM: Rules = (  # convolutions before the patches
    *((rf'^patch_embed\.conv{layer + 1}\.', f'stages.0.embed.layers.{layer}.conv.') for layer in range(3)),
    *((rf'^patch_embed\.bn{layer + 1}\.', f'stages.0.embed.layers.{layer}.bn.') for layer in range(3)),
    (r'^patch_embed\.proj\.', 'stages.0.embed.patch.projection.'),
)
T2T: Rules = (
    (r'^tokens_to_token\.project', 'stages.0.embed.project'),
    (r'^tokens_to_token\.attention1\.', 'stages.0.embed.transformers.0.'),
    (r'^tokens_to_token\.attention2\.', 'stages.0.embed.transformers.1.'),
    (r'(transformers\.\d)\.attn\.', r'\1.'),
    (r'(transformers\.\d)\.(?:ln|norm)1', r'\1.norm'),
    (r'(transformers\.\d)\.(?:ln|norm)2', r'\1.feed_norm'),
    (r'(transformers\.\d)\.(?:mlp\.fc1|ffn\.layers\.0\.0)', r'\1.feed_forward.0'),
    (r'(transformers\.\d)\.(?:mlp\.fc2|ffn\.layers\.1)', r'\1.feed_forward.2'),
)
TNT: Rules = (  # to the names of MMPretrain's backbone
    (r'^blocks\.', 'layers.'),
    (r'\.(attn|mlp)_in\.', r'.inner_block.\1.'),
    (r'\.norm_in\.', '.inner_block.norm_attn.'),
    (r'\.norm_mlp_in\.', '.inner_block.norm_ffn.'),
    (r'\.attn_out\.', '.outer_block.attn.'),
    (r'\.norm_out\.', '.outer_block.norm_attn.'),
    (r'\.norm_mlp\.', '.outer_block.norm_ffn.'),
    (r'(\d)\.mlp\.', r'\1.outer_block.mlp.'),
    (r'\.norm1_proj\.', '.norm_proj.'),
    (r'\.attn\.proj\.', '.attn.attn.out_proj.'),
    (r'\.attn\.qk\.', '.attn.attn.query_key_'),
    (r'\.attn\.v\.', '.attn.attn.value_'),
    (r'\.mlp\.fc1', '.ffn.layers.0.0'),
    (r'\.mlp\.fc2', '.ffn.layers.1'),
    (r'(^|\d\.)proj\.', r'\1projection.'),
    (r'^head\.', 'head.fc.'),
)


def _stack_offsets(state: State, own: State) -> None:
    """Stack PS-ViT's layers of offsets, which are one tensor here."""
    for name, kind in (('moves', 'weight'), ('shifts', 'bias')):
        layers = sorted(key for key in state if key.startswith('offsets.') and key.endswith(kind))
        if layers:
            state[f'stages.0.embed.{name}'] = torch.stack([state.pop(key) for key in layers])


FORMATS = (
    Format('timm ViT', r'^blocks\.0\.attn\.qkv\.weight', PLAIN),
    Format(
        'torchvision ViT',
        r'^encoder\.layers\.encoder_layer_0\.ln_1\.',
        (
            (r'^class_token', 'cls_token'),
            (r'^conv_proj\.', 'patch_embed.proj.'),
            (r'^encoder\.pos_embedding', 'pos_embed'),
            (r'^encoder\.ln\.', 'norm.'),
            (r'^encoder\.layers\.encoder_layer_', 'blocks.'),
            (r'\.ln_([12])\.', r'.norm\1.'),
            (r'\.self_attention\.in_proj_', '.attn.qkv.'),
            (r'\.self_attention\.out_proj\.', '.attn.proj.'),
            (r'\.mlp\.(?:0|linear_1)\.', '.mlp.fc1.'),
            (r'\.mlp\.(?:3|linear_2)\.', '.mlp.fc2.'),
            (r'^heads\.head\.', 'head.'),
            *PLAIN,
        ),
    ),
    Format(
        'MMPretrain ViT',
        r'^layers\.0\.ffn\.layers\.0\.0\.',
        ((r'^layers\.', 'blocks.'), (r'^ln1\.', 'norm.'), *MM_BLOCK, *PLAIN),
    ),
    Format(
        'Hugging Face ViT',
        r'^(?:vit|deit)\.embeddings\.cls_token',
        (
            (r'^(?:vit|deit)\.', ''),
            (r'^embeddings\.cls_token', 'cls_token'),
            (r'^embeddings\.distillation_token', 'dist_token'),
            (r'^embeddings\.position_embeddings', 'pos_embed'),
            (r'^embeddings\.patch_embeddings\.projection', 'patch_embed.proj'),
            (r'^layernorm\.', 'norm.'),
            (r'^(?:encoder\.layer|layers)\.', 'blocks.'),
            *HF_BLOCK,
            *PLAIN,
        ),
    ),
    Format(
        'timm CaiT',
        r'^blocks_token_only\.',
        (
            (r'^cls_token', 'stages.1.class_tokens'),
            (r'^norm\.', 'stages.1.norm.'),
            (r'^blocks_token_only\.', 'stages.1.blocks.'),
            (r'\.gamma_1', '.attention.scale.weight'),
            (r'\.gamma_2', '.feed_forward.scale.weight'),
            (r'\.attn\.proj_l', '.attention.part.mix.0'),
            (r'\.attn\.proj_w', '.attention.part.mix_maps.0'),
            *PLAIN,
        ),
    ),
    Format("the authors' T2T-ViT", r'^tokens_to_token\.attention1\.norm1\.', (*T2T, *PLAIN)),
    Format(
        'MMPretrain T2T-ViT (its logits differ: it multiplies queries by sqrt(d), where the authors divide by it)',
        r'^tokens_to_token\.attention1\.ln1\.',
        (*T2T, (r'^encoder\.', 'blocks.'), *MM_BLOCK, *PLAIN),
    ),
    Format(
        "the authors' CeiT",
        r'^i2t\.backbone\.conv\.',
        (
            (r'^i2t\.backbone\.', 'stages.0.embed.layers.0.'),
            (r'^i2t\.proj\.', 'stages.0.embed.patch.projection.'),
            (r'^pos_layer_embed', 'neck.layers'),
            (r'^norm\.', 'neck.norm.'),
            (r'^lca\.feedforward\.', 'neck.block.mlp.'),
            (r'^lca\.', 'neck.block.'),
            (r'\.leff\.conv1\.', '.feed_forward.part.fc1.'),
            (r'\.leff\.conv2\.', '.feed_forward.part.local.module.conv.'),
            (r'\.leff\.conv3\.', '.feed_forward.part.fc2.'),
            (r'\.leff\.bn1\.', '.feed_forward.part.fc1_norm.norm.'),
            (r'\.leff\.bn2\.', '.feed_forward.part.local.module.bn.'),
            (r'\.leff\.bn3\.', '.feed_forward.part.fc2_norm.norm.'),
            *PLAIN,
        ),
    ),
    Format(
        "the authors' LocalViT",
        r'^blocks\.0\.conv\.conv\.0\.',
        (
            (r'\.conv\.conv\.0\.', '.feed_forward.part.fc1.'),
            (r'\.conv\.conv\.1\.', '.feed_forward.part.fc1_norm.norm.'),
            (r'\.conv\.conv\.3\.', '.feed_forward.part.local.module.conv.'),
            (r'\.conv\.conv\.4\.', '.feed_forward.part.local.module.bn.'),
            (r'\.conv\.conv\.6\.fc\.0\.', '.feed_forward.part.squeeze.conv1.conv.'),
            (r'\.conv\.conv\.6\.fc\.2\.', '.feed_forward.part.squeeze.conv2.conv.'),
            (r'\.conv\.conv\.7\.', '.feed_forward.part.fc2.'),
            (r'\.conv\.conv\.8\.', '.feed_forward.part.fc2_norm.norm.'),
            *PLAIN,
        ),
    ),
    Format(
        "the authors' DeepViT",
        r'^patch_embed\.conv2\.',
        (
            (r'\.attn\.reatten_matrix\.', '.attention.part.mix_maps.0.'),
            (r'\.attn\.var_norm\.', '.attention.part.mix_maps.1.'),
            *STEM,
            *PLAIN,
        ),
    ),
    Format("the authors' LV-ViT", r'^aux_head\.', ((r'^aux_head\.', 'head.fc_patches.'), *STEM, *PLAIN)),
    Format(
        "the authors' ViT_C",
        r'^stem\.cstem0_conv\.',
        (
            (r'^class_token', 'cls_token'),
            (r'^pos_embedding', 'pos_embed'),
            (r'^stem\.cstem(\d)_(conv|bn)\.', r'stages.0.embed.layers.\1.\2.'),
            (r'^stem\.cstem_last_conv\.', 'stages.0.embed.patch.projection.'),
            (r'^encoder\.block_', 'blocks.'),
            (r'^encoder\.ln\.', 'norm.'),
            (r'\.ln_([12])\.', r'.norm\1.'),
            (r'\.self_attention\.block\.in_proj_', '.attn.qkv.'),
            (r'\.self_attention\.block\.out_proj\.', '.attn.proj.'),
            (r'\.mlp_block\.linear_([12])\.', r'.mlp.fc\1.'),
            (r'^head\.head_fc\.', 'head.'),
            *PLAIN,
        ),
    ),
    Format(
        "the authors' PS-ViT",
        r'^ps_layers\.0\.',
        (
            (r'^(?:pos_layer|ps_layers\.\d\.position_layer)\.', 'stages.0.embed.position.'),
            (r'^ps_layers\.(\d)\.offset_layer\.', r'offsets.\1.'),
            (r'^ps_layers\.(\d)\.transformer_layer\.', r'stages.0.embed.blocks.\1.'),
            (r'^trans_layers\.', 'blocks.'),
            (r'^stem\.0\.', 'stages.0.embed.stem.0.conv.'),
            (r'^stem\.1\.', 'stages.0.embed.stem.0.bn.'),
            (r'^stem\.4\.', 'stages.0.embed.stem.2.'),
            (r'^stem\.5\.', 'stages.0.embed.stem.3.'),
            *((rf'(stem\.\d)\.conv{layer + 1}\.', rf'\1.layers.{layer}.conv.') for layer in range(3)),
            *((rf'(stem\.\d)\.bn{layer + 1}\.', rf'\1.layers.{layer}.bn.') for layer in range(3)),
            (r'(stem\.\d)\.downsample\.0\.', r'\1.shortcut.conv.'),
            (r'(stem\.\d)\.downsample\.1\.', r'\1.shortcut.bn.'),
            *PLAIN,
        ),
        change=_stack_offsets,
    ),
    Format('timm TNT', r'^blocks\.0\.attn_in\.', TNT),
)
