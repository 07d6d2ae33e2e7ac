"""Public checkpoints of the survey's systems: their tensors under the names of ours.

Each family has a table of rules, tried in order on every name: a pattern and what stands for it. The names are timm's,
whose files hold most of the authors' weights; MMPretrain's and torchvision's differ and have their own table where they
are wanted.
"""

import re
from collections.abc import Sequence, Set

import torch
from torch import Tensor

Rules = tuple[tuple[str, str], ...]

BLOCK: Rules = (
    (r'\.norm1\.', '.attention.norm.'),
    (r'\.norm2\.', '.feed_forward.norm.'),
    (r'\.mlp\.fc1', '.feed_forward.part.fc1'),
    (r'\.mlp\.fc2', '.feed_forward.part.fc2'),
    (r'\.mlp\.dwconv', '.feed_forward.part.local.module.conv'),
    (r'\.attn\.sr', '.attention.part.reduce.convolution'),
    (r'\.attn\.norm', '.attention.part.reduce.norm'),
    (r'\.attn\.q\.', '.attention.part.query.'),
    (r'\.attn\.kv\.', '.attention.part.key_value.'),
    (r'\.attn\.k\.', '.attention.part.key.'),
    (r'\.attn\.v\.', '.attention.part.value.'),
    (r'\.attn\.', '.attention.part.'),
    (r'^head_dist\.', 'head.fc_distillation.'),
    (r'^head\.(?!fc)', 'head.fc.'),
)
PLAIN: Rules = (
    (r'^blocks\.', 'stages.0.blocks.'),
    (r'^patch_embed\.proj', 'stages.0.embed.projection'),
    (r'^pos_embed', 'stages.0.position.vectors'),
    (r'^norm\.', 'stages.0.norm.'),
)
SWIN: Rules = (
    (r'^patch_embed\.proj', 'stages.0.embed.projection'),
    (r'^patch_embed\.norm', 'stages.0.embed.norm'),
    (r'^layers\.(\d)\.downsample', r'stages.\1.embed'),
    (r'^layers\.', 'stages.'),
    (r'^norm\.', 'stages.3.norm.'),
    (r'\.attn\.relative_position_bias_table', '.attention.part.bias.table'),
)
CHECKPOINT_FORMATS: dict[str, Rules] = {
    'vit': ((r'^cls_token', 'stages.0.class_tokens'), *PLAIN, *BLOCK),
    'cait': (
        (r'^cls_token', 'stages.1.class_tokens'),
        (r'^norm\.', 'stages.1.norm.'),
        (r'^blocks_token_only\.', 'stages.1.blocks.'),
        (r'\.gamma_1', '.attention.scale.weight'),
        (r'\.gamma_2', '.feed_forward.scale.weight'),
        (r'\.attn\.proj_l', '.attention.part.mix.0'),
        (r'\.attn\.proj_w', '.attention.part.mix_maps.0'),
        *PLAIN,
        *BLOCK,
    ),
    'swin': (*SWIN, *BLOCK),
    'swinv2': (
        (r'\.norm1\.', '.attention.post_norm.'),
        (r'\.norm2\.', '.feed_forward.post_norm.'),
        (r'\.attn\.logit_scale', '.attention.part.log_scale'),
        (r'\.attn\.q_bias', '.attention.part.query_bias'),
        (r'\.attn\.v_bias', '.attention.part.value_bias'),
        (r'\.attn\.cpb_mlp', '.attention.part.bias.mlp'),
        *SWIN,
        *BLOCK,
    ),
    'pvtv2': (
        (r'^patch_embed\.proj', 'stages.0.embed.projection'),
        (r'^patch_embed\.norm', 'stages.0.embed.norm'),
        (r'^stages\.(\d)\.downsample\.proj', r'stages.\1.embed.projection'),
        (r'^stages\.(\d)\.downsample\.norm', r'stages.\1.embed.norm'),
        *BLOCK,
    ),
    'twins': (
        (r'^patch_embeds\.(\d)\.proj', r'stages.\1.embed.projection'),
        (r'^patch_embeds\.(\d)\.norm', r'stages.\1.embed.norm'),
        (r'^blocks\.(\d)\.', r'stages.\1.blocks.'),
        (r'^pos_block\.(\d)\.proj\.0', r'stages.\1.peg.0.proj'),
        (r'^norm\.', 'stages.3.norm.'),
        *BLOCK,
    ),
    't2t': (  # MMPretrain's
        (r'^cls_token', 'stages.0.class_tokens'),
        (r'^pos_embed', 'stages.0.position.vectors'),
        (r'^norm\.', 'stages.0.norm.'),
        (r'^tokens_to_token\.project', 'stages.0.embed.project'),
        (r'^tokens_to_token\.attention1\.', 'stages.0.embed.transformers.0.'),
        (r'^tokens_to_token\.attention2\.', 'stages.0.embed.transformers.1.'),
        (r'(transformers\.\d)\.attn\.', r'\1.'),
        (r'(transformers\.\d)\.ln1', r'\1.norm'),
        (r'(transformers\.\d)\.ln2', r'\1.feed_norm'),
        (r'(transformers\.\d)\.ffn\.layers\.0\.0', r'\1.feed_forward.0'),
        (r'(transformers\.\d)\.ffn\.layers\.1', r'\1.feed_forward.2'),
        (r'^encoder\.', 'stages.0.blocks.'),
        (r'\.ln1', '.attention.norm'),
        (r'\.ln2', '.feed_forward.norm'),
        (r'\.attn\.', '.attention.part.'),
        (r'\.ffn\.layers\.0\.0', '.feed_forward.part.fc1'),
        (r'\.ffn\.layers\.1', '.feed_forward.part.fc2'),
    ),
    'mvit': (  # torchvision's, MMPretrain's and timm's
        (r'^(conv_proj|patch_embed\.proj(ection)?)\.', 'stages.0.embed.projection.'),
        (r'^(pos_encoding\.class_token|cls_token)', 'stages.0.class_tokens'),
        (r'^pos_encoding\.spatial_pos', 'stages.0.position.space'),
        (r'^pos_encoding\.temporal_pos', 'stages.0.position.time'),
        (r'^pos_encoding\.class_pos', 'stages.0.position.classes'),
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
        (r'^head\.(1|fc)\.', 'head.fc.'),
        *BLOCK,
    ),
}

# Names of ours whose last axis holds the channels of 2x2 neighbours.
NEIGHBOURS = dict(
    swin=re.compile(r'stages\.[1-3]\.embed\.(norm|reduction)\.'),
    swinv2=re.compile(r'stages\.[1-3]\.embed\.reduction\.'),
)
NONE = re.compile('$^')
NUMBERED_THROUGH = ('mvit',)  # files of these count blocks from the first stage to the last


def to_own_names(state: dict[str, Tensor], family: str, depths: Sequence[int] = ()) -> dict[str, Tensor]:
    """A public checkpoint's tensors under our names; ``head.fc.*`` is the classifier.

    Args:
        state: the checkpoint's tensors by name.
        family: a key of :data:`CHECKPOINT_FORMATS`.
        depths: how many blocks each stage has.
    """
    if 'dist_token' in state:  # a distilled DeiT has its two class tokens apart
        tokens = [state[name] for name in ('cls_token', 'dist_token')]
        rest = {name: tensor for name, tensor in state.items() if name != 'dist_token'}
        state = rest | dict(cls_token=torch.cat(tokens, dim=1))
    renamed = {}
    blocks = [f'stages.{stage}.blocks.{block}.' for stage, depth in enumerate(depths) for block in range(depth)]
    for name, tensor in state.items():
        if family in NUMBERED_THROUGH:
            name = re.sub(r'^blocks\.(\d+)\.', lambda found: dict(enumerate(blocks)).get(int(found[1]), found[0]), name)
        for pattern, replacement in CHECKPOINT_FORMATS[family]:
            name = re.sub(pattern, replacement, name)
        renamed[name] = _neighbours_in_order(tensor) if NEIGHBOURS.get(family, NONE).match(name) else tensor
    return renamed


def recognise(
    state: dict[str, Tensor], own: Set[str], family: str | None, depths: Sequence[int]
) -> tuple[str, dict[str, Tensor]]:
    """What the names of a file are, and its tensors under ours: those of a checkpoint of ours, or of a public one.

    Args:
        state: the file's tensors by name.
        own: names in the backbone.
        family: a key of :data:`CHECKPOINT_FORMATS`; None where there is no table.
        depths: how many blocks each stage has.
    """
    names = "the model's own names"
    if family and len(own & state.keys()) < len(own) / 2:
        names, state = f'public {family}', to_own_names(state, family, depths)
    state = dict(state)
    for name in own - state.keys():  # one projection of ours, where theirs has the query's apart
        parts = [name.replace('.qkv.', f'.{part}.') for part in ('query', 'key_value')]
        if parts[0] != name and all(part in state for part in parts):
            state[name] = torch.cat([state.pop(part) for part in parts])
    return names, state


def _neighbours_in_order(tensor: Tensor) -> Tensor:
    """Channels of 2x2 neighbours as patch merging takes them: theirs neighbour by neighbour, down before right.

    Ours come channel by channel, right before down.
    """
    neighbours = tensor.unflatten(-1, (4, -1))[..., [0, 2, 1, 3], :]
    return neighbours.transpose(-2, -1).flatten(-2)
