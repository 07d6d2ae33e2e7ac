"""Formats of transformers with spatially reduced keys and values: PVT, PVT v2, P2T, ResT, Twins-PCPVT, Twins-SVT."""

import re

from .table import BLOCK, FROM_ONE, HF_BLOCK, MM_BLOCK, Format, Rules, State, each

PYRAMID: Rules = (
    *each(r'^patch_embed#\.proj\.', 'stages.#.embed.projection.', FROM_ONE),
    *each(r'^patch_embed#\.norm\.', 'stages.#.embed.norm.', FROM_ONE),
    *each(r'^block#\.', 'stages.#.blocks.', FROM_ONE),
    *each(r'^pos_embed#', 'stages.#.position.vectors', FROM_ONE),
    *each(r'^norm#\.', 'stages.#.norm.', FROM_ONE),
    (r'^cls_token', 'stages.3.class_tokens'),
    (r'^norm\.', 'stages.3.norm.'),
    *BLOCK,
)
TWINS: Rules = (
    (r'^patch_embeds\.(\d)\.proj(ection)?\.', r'stages.\1.embed.projection.'),
    (r'^patch_embeds\.(\d)\.norm\.', r'stages.\1.embed.norm.'),
    (r'^blocks\.(\d)\.', r'stages.\1.blocks.'),
    (r'^(?:pos_block\.(\d)\.proj\.0|position_encodings\.(\d)\.proj)\.', r'stages.\1\2.peg.0.proj.'),
    (r'^norm\.', 'stages.3.norm.'),
    *BLOCK,
)
MM_TWINS: Rules = ((r'^stages\.', 'blocks.'), (r'^norm_after_stage3\.', 'norm.'))


def _share_convolutions(state: State, own: State) -> None:
    """Copy P2T's convolutions of a stage to each of its blocks, which share them here."""
    shared = [name for name in state if '.shared.' in name]
    for name in own:
        key = re.sub(r'\.blocks\.\d+\.attention\.part\.reduce\.convolutions\.', '.shared.', name)
        if key in shared:
            state[name] = state[key]
    for name in shared:
        del state[name]


FORMATS = (
    Format("the authors' PVT", r'^block1\.0\.attn\.q\.', PYRAMID),
    Format(
        'timm PVT v2',
        r'^stages\.1\.downsample\.proj\.',
        (
            (r'^patch_embed\.proj\.', 'stages.0.embed.projection.'),
            (r'^patch_embed\.norm\.', 'stages.0.embed.norm.'),
            (r'^stages\.(\d)\.downsample\.proj\.', r'stages.\1.embed.projection.'),
            (r'^stages\.(\d)\.downsample\.norm\.', r'stages.\1.embed.norm.'),
            *BLOCK,
        ),
    ),
    Format(
        'Hugging Face PVT',
        r'^pvt\.encoder\.patch_embeddings\.0\.projection\.',
        (
            (r'^pvt\.encoder\.patch_embeddings\.(\d)\.projection\.', r'stages.\1.embed.projection.'),
            (r'^pvt\.encoder\.patch_embeddings\.(\d)\.layer_norm\.', r'stages.\1.embed.norm.'),
            (r'^pvt\.encoder\.patch_embeddings\.(\d)\.position_embeddings', r'stages.\1.position.vectors'),
            (r'^pvt\.encoder\.patch_embeddings\.3\.cls_token', 'stages.3.class_tokens'),
            (r'^pvt\.encoder\.block\.(\d)\.', r'stages.\1.blocks.'),
            (r'^pvt\.encoder\.layer_norm\.', 'stages.3.norm.'),
            *HF_BLOCK,
            *BLOCK,
        ),
    ),
    Format(
        'Hugging Face PVT v2',
        r'^pvt_v2\.encoder\.layers\.0\.patch_embedding\.',
        (
            (r'^pvt_v2\.encoder\.layers\.(\d)\.patch_embedding\.proj\.', r'stages.\1.embed.projection.'),
            (r'^pvt_v2\.encoder\.layers\.(\d)\.patch_embedding\.layer_norm\.', r'stages.\1.embed.norm.'),
            (r'^pvt_v2\.encoder\.layers\.(\d)\.layer_norm\.', r'stages.\1.norm.'),
            (r'^pvt_v2\.encoder\.layers\.', 'stages.'),
            *HF_BLOCK,
            *BLOCK,
        ),
    ),
    Format(
        "the authors' P2T",
        r'^d_convs1\.0\.',
        (
            *each(r'^d_convs#\.', 'stages.#.shared.', FROM_ONE),
            (r'\.attn\.(q|kv)\.0\.', r'.attn.\1.'),
            (r'\.mlp\.conv\.', '.mlp.dwconv.'),
            *PYRAMID,
        ),
        change=_share_convolutions,
    ),
    Format(
        "the authors' ResT",
        r'^stem\.pos\.pa_conv\.',
        (
            *each(r'^stem\.conv#\.', 'stages.0.embed.layers.#.conv.', FROM_ONE),
            *each(r'^stem\.norm#\.', 'stages.0.embed.layers.#.bn.', FROM_ONE),
            (r'^stem\.pos\.pa_conv\.', 'stages.0.position.module.conv.'),
            *each(r'^patch_embed_#\.conv\.', 'stages.#.embed.projection.', FROM_ONE),
            *each(r'^patch_embed_#\.norm\.', 'stages.#.embed.norm.norm.', FROM_ONE),
            *each(r'^patch_embed_#\.pos\.pa_conv\.', 'stages.#.position.module.conv.', FROM_ONE),
            *each(r'^stage#\.', 'stages.#.blocks.', FROM_ONE),
            (r'\.attn\.transform_conv\.', '.attention.part.mix.0.'),
            (r'^norm\.', 'stages.3.norm.'),
            *BLOCK,
        ),
    ),
    Format('timm Twins', r'^pos_block\.0\.proj\.0\.', TWINS),
    Format('MMPretrain Twins', r'^position_encodings\.0\.proj\.', (*MM_TWINS, *MM_BLOCK, *TWINS)),
)
