"""Formats of transformers with window attention: Swin, Swin v2, CSWin, ELSA, MSG, Shuffle Transformer."""

import re

import torch

from .table import BLOCK, HF_BLOCK, MM_BLOCK, Format, Rules, State, each

MERGING = r'stages\.[1-3]\.embed\.(norm|reduction)\.'
MERGING_V2 = r'stages\.[1-3]\.embed\.reduction\.'
TO_NEXT = [(stage, stage + 1) for stage in range(3)]  # downsampling belongs to the stage before

SWIN: Rules = (
    (r'^patch_embed\.proj(ection)?\.', 'stages.0.embed.projection.'),
    (r'^patch_embed\.norm', 'stages.0.embed.norm'),
    (r'^layers\.(\d)\.downsample', r'stages.\1.embed'),
    (r'^layers\.', 'stages.'),
    (r'^norm3?\.', 'stages.3.norm.'),
    (r'\.attn\.(?:relative_position_bias\.)?relative_position_bias_table', '.attention.part.bias.table'),
    *BLOCK,
)
SWIN_V2: Rules = (
    (r'\.norm1\.', '.attention.post_norm.'),
    (r'\.norm2\.', '.feed_forward.post_norm.'),
    (r'\.attn\.logit_scale', '.attention.part.log_scale'),
    (r'\.attn\.q_bias', '.attention.part.query_bias'),
    (r'\.attn\.v_bias', '.attention.part.value_bias'),
    (r'\.attn\.cpb_mlp', '.attention.part.bias.mlp'),
    (r'\.attn\.relative_coords_table', '.attention.part.bias.coordinates'),
    *SWIN,
)
NEXT: Rules = each(r'^(?:layers|stages)\.#\.downsample\.', 'stages.#.embed.', TO_NEXT)
TORCHVISION: Rules = (
    (r'^features\.0\.0\.', 'stages.0.embed.projection.'),
    (r'^features\.0\.2\.', 'stages.0.embed.norm.'),
    *each(r'^features\.#\.(?=reduction|norm)', 'stages.#.embed.', [(2, 1), (4, 2), (6, 3)]),
    *each(r'^features\.#\.', 'stages.#.blocks.', [(1, 0), (3, 1), (5, 2), (7, 3)]),
    (r'\.mlp\.0\.', '.mlp.fc1.'),
    (r'\.mlp\.3\.', '.mlp.fc2.'),
)
HUGGING_FACE: Rules = (
    (r'^swin(?:v2)?\.', ''),
    (r'^embeddings\.patch_embeddings\.projection\.', 'stages.0.embed.projection.'),
    (r'^embeddings\.norm\.', 'stages.0.embed.norm.'),
    (r'^layernorm\.', 'norm.'),
    (r'^encoder\.', ''),
    *NEXT,
    (r'\.attention\.(?:self|relative_position_bias)\.relative_position_bias_table', '.attention.part.bias.table'),
    (r'\.attention\.self\.(logit_scale|relative_coords_table)', r'.attn.\1'),
    (r'\.attention\.self\.continuous_position_bias_mlp', '.attn.cpb_mlp'),
    *HF_BLOCK,
)


def _split_messenger_bias(state: State, own: State) -> None:
    """Split MSG's bias into that to (first) and from (second) a messenger, and reshape its messengers."""
    for name in [name for name in state if name.endswith('.messenger_bias')]:
        both = state.pop(name)
        for index, part in enumerate(('to_messenger', 'from_messenger')):
            state[name.replace('messenger_bias', part)] = both[:, index]
    name = 'stages.0.embed.messengers'
    if name in state and name in own and state[name].numel() == own[name].numel():
        state[name] = state[name].reshape(own[name].shape)


def _windows_of_elsa(state: State, own: State) -> None:
    """Reorder ELSA's values, queries and keys, and its bias tables (heads first, opposite offsets)."""
    for name in [name for name in state if name.endswith('.bias.heads_first')]:
        state[name.replace('heads_first', 'table')] = state.pop(name).T.flip(0)
        for kind in ('weight', 'bias'):
            value, query, key = state[projection := name.replace('bias.heads_first', f'qkv.{kind}')].chunk(3)
            state[projection] = torch.cat([query, key, value])


def _split_branches(state: State, own: State) -> None:
    """Split CSWin's queries, keys and values between horizontal and vertical stripes, half of the channels each."""
    for name in own:
        branch = re.fullmatch(r'(.*)\.branches\.(\d)\.qkv\.(weight|bias)', name)
        whole = f'{branch[1]}.qkv.{branch[3]}' if branch else ''
        if branch and whole in state and not state[whole].shape[0] % 6:
            state[name] = state[whole].unflatten(0, (3, 2, -1))[:, int(branch[2])].flatten(0, 1)
    for name in [name for name in state if '.qkv.' in name and name not in own]:
        if name.replace('.qkv.', '.branches.1.qkv.') in state:
            del state[name]


def _shuffle_blocks() -> Rules:
    """Return rules for the layers of the Shuffle Transformer, which are pairs of blocks."""
    pairs = [(f'{pair}\\.{half}', 2 * pair + half) for pair in range(12) for half in range(2)]
    return each(r'(stages\.\d)\.layers\.#\.', r'\1.blocks.#.', pairs)


FORMATS = (
    Format('timm Swin', r'^layers\.1\.downsample\.norm', SWIN, neighbours=MERGING),
    Format('Microsoft Swin', r'^layers\.0\.downsample\.norm', (*NEXT, *SWIN), neighbours=MERGING),
    Format('MMPretrain Swin', r'\.attn\.w_msa\.relative_position_bias_table', (*NEXT, *MM_BLOCK, *SWIN)),
    Format('torchvision Swin', r'^features\.1\.0\.attn\.', (*TORCHVISION, *SWIN), neighbours=MERGING),
    Format('Hugging Face Swin', r'^swin\.embeddings\.', (*HUGGING_FACE, *SWIN), neighbours=MERGING),
    Format('timm Swin v2', r'^layers\.0\.blocks\.0\.attn\.logit_scale', SWIN_V2, neighbours=MERGING_V2),
    Format('Microsoft Swin v2', r'^layers\.0\.blocks\.0\.attn\.logit_scale', (*NEXT, *SWIN_V2), neighbours=MERGING_V2),
    Format(
        'MMPretrain Swin v2',
        r'\.attn\.w_msa\.cpb_mlp',
        ((r'^stages\.(\d)\.downsample\.', r'stages.\1.embed.'), *MM_BLOCK, *SWIN_V2),
    ),
    Format('torchvision Swin v2', r'^features\.1\.0\.attn\.cpb_mlp', (*TORCHVISION, *SWIN_V2), neighbours=MERGING_V2),
    Format(
        'Hugging Face Swin v2',
        r'^swinv2\.embeddings\.',
        (
            *HUGGING_FACE,
            (r'\.part\.query\.bias', '.part.query_bias'),
            (r'\.part\.value\.bias', '.part.value_bias'),
            *SWIN_V2,
        ),
        neighbours=MERGING_V2,
    ),
    Format(
        "the authors' CSWin",
        r'^stage1_conv_embed\.',
        (
            (r'^stage1_conv_embed\.0\.', 'stages.0.embed.projection.'),
            (r'^stage1_conv_embed\.2\.', 'stages.0.embed.norm.'),
            (r'^merge(\d)\.conv\.', r'stages.\1.embed.projection.'),
            (r'^merge(\d)\.norm\.', r'stages.\1.embed.norm.'),
            (r'^stage4\.(\d+)\.attns\.0\.get_v\.', r'stages.3.blocks.\1.attention.part.local.module.conv.'),
            (r'\.attns\.(\d)\.get_v\.', r'.attention.part.branches.\1.local.module.conv.'),
            (r'^(stage\d\.\d+)\.(qkv|proj)\.', r'\1.attention.part.\2.'),
            *each(r'^stage#\.', 'stages.#.blocks.', [(stage + 1, stage) for stage in range(4)]),
            (r'^norm\.', 'stages.3.norm.'),
            *BLOCK,
        ),
        change=_split_branches,
    ),
    Format(
        "the authors' ELSA",
        r'^layers\.0\.blocks\.0\.attn\.ghost_head',
        (
            (r'\.attn\.ghost_head', '.attention.part.ghost_shift'),
            (r'\.attn\.pre_proj\.', '.attention.part.qkv.'),
            (r'\.attn\.attn\.', '.attention.part.local_maps.'),
            (r'\.attn\.post_proj\.', '.attention.part.proj.'),
            (r'\.attn\.rb$', '.attention.part.bias.heads_first'),
            *NEXT,
            *SWIN,
        ),
        neighbours=MERGING,
        change=_windows_of_elsa,
    ),
    Format(
        "the authors' MSG",
        r'^msg_tokens$',
        (
            (r'^msg_tokens$', 'stages.0.embed.messengers'),
            (r'^patch_embed\.proj\.', 'stages.0.embed.embed.projection.'),
            (r'^patch_embed\.norm\.', 'stages.0.embed.embed.norm.'),
            (r'\.attn\.rel_pos_msg$', '.attention.part.bias.messenger_bias'),
            *NEXT,
            *SWIN,
        ),
        neighbours=MERGING,
        change=_split_messenger_bias,
    ),
    Format(
        "the authors' Shuffle Transformer",
        r'^to_token\.conv1\.',
        (
            *each(r'^to_token\.conv#\.0\.', 'stages.0.embed.layers.#.conv.', [(1, 0), (2, 1)]),
            *each(r'^to_token\.conv#\.1\.', 'stages.0.embed.layers.#.bn.', [(1, 0), (2, 1)]),
            (r'^to_token\.conv3\.', 'stages.0.embed.patch.projection.'),
            *each(r'^stage#\.', 'stages.#.', [(stage + 1, stage) for stage in range(4)]),
            *_shuffle_blocks(),
            (r'\.patch_partition\.norm\.', '.embed.layers.0.bn.'),
            (r'\.patch_partition\.reduction\.', '.embed.layers.0.conv.'),
            (r'\.attn\.to_qkv\.', '.attn.qkv.'),
            (r'\.attn\.relative_position_bias_table', '.attention.part.bias.table'),
            (r'\.local\.(?=weight|bias)', '.between.part.module.conv.'),
            (r'\.norm1\.', '.attention.norm.norm.'),
            (r'\.norm2\.', '.between.norm.norm.'),
            (r'\.norm3\.', '.feed_forward.norm.norm.'),
            *BLOCK,
        ),
    ),
)
