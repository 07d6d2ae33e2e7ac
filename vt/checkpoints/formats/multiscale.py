"""Formats of multiscale vision transformers: MViT and MViTv2, for images and videos."""

from .table import BLOCK, Format, Rules, State

MVIT: Rules = (
    (r'^(conv_proj|patch_embed\.proj(ection)?)\.', 'stages.0.embed.projection.'),
    (r'^(pos_encoding\.class_token|cls_token)$', 'stages.0.class_tokens'),
    (r'^(pos_encoding\.spatial_pos|pos_embed_spatial)$', 'stages.0.position.space'),
    (r'^(pos_encoding\.temporal_pos|pos_embed_temporal)$', 'stages.0.position.time'),
    (r'^(pos_encoding\.class_pos|pos_embed_class)$', 'stages.0.position.classes'),
    (r'^pos_embed$', 'stages.0.position.vectors'),
    (r'^norm3?\.', 'stages.3.norm.'),
    (r'\.(proj|shortcut_proj_attn|shortcut_proj_mlp)\.(?=weight|bias)', '.project.'),
    (r'\.attn\.project\.0\.', '.attn.proj.'),
    (r'\.attn\.project\.(?=weight|bias)', '.attn.proj.'),
    (r'\.attn\.(pool|norm)_q\.', r'.attn.\1_query.'),
    (r'\.attn\.(pool|norm)_k\.', r'.attn.\1_key.'),
    (r'\.attn\.(pool|norm)_v\.', r'.attn.\1_value.'),
    (r'\.attn\.norm_(query|key|value)\.', r'.attn.pool_\1.norm.'),
    (r'\.norm_act\.0\.', '.norm.'),
    (r'\.pool\.weight', '.weight'),
    (r'\.attn\.rel_pos_h', '.attn.relative.tables.height'),
    (r'\.attn\.rel_pos_w', '.attn.relative.tables.width'),
    (r'\.attn\.rel_pos_t', '.attn.relative.tables.time'),
    (r'\.mlp\.0\.', '.mlp.fc1.'),
    (r'\.mlp\.3\.', '.mlp.fc2.'),
    (r'^(cls_head\.fc_cls|head\.(1|fc|projection))\.', 'head.fc.'),
    *BLOCK,
)


def _split_positions(state: State, own: State) -> None:
    """Split the positions of images and class token, which are one tensor in SlowFast."""
    name, space, classes = (f'stages.0.position.{kind}' for kind in ('vectors', 'space', 'classes'))
    if name in state and space in own and state[name].shape[1] > 1 and 'stages.0.position.time' not in own:
        vectors = state.pop(name)
        number = own[classes].shape[1] if classes in own else 0
        state[space] = vectors[:, number:]
        if number:
            state[classes] = vectors[:, :number]


FORMATS = (
    Format('timm MViT', r'^stages\.0\.blocks\.0\.attn\.pool_', MVIT),
    Format('torchvision MViT', r'^conv_proj\.', MVIT, numbered_through=True),
    Format('MMPretrain MViT', r'^patch_embed\.projection\.', MVIT, numbered_through=True),
    Format("the authors' MViT", r'^patch_embed\.proj\.', MVIT, numbered_through=True, change=_split_positions),
)
