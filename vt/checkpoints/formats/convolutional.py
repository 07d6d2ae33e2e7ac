"""Formats of networks with convolutions: ResNet and ResNet-D, HRFormer, ViTAE."""

import torch

from .table import BLOCK, Format, Rules, State, each

BOTTLENECK: Rules = (
    *((rf'\.conv{layer + 1}\.', f'.layers.{layer}.conv.') for layer in range(3)),
    *((rf'\.bn{layer + 1}\.', f'.layers.{layer}.bn.') for layer in range(3)),
    (r'\.downsample\.0\.', '.shortcut.conv.'),
    (r'\.downsample\.1\.', '.shortcut.bn.'),
)
# Each step to a coarser branch is a depthwise and a pointwise convolution.
UNITS = ('0.conv', '0.bn', '1.conv', '1.bn')
HALVINGS = [
    (f'{step}\\.{index}', f'{2 * step + index // 2}.{UNITS[index][2:]}') for step in range(3) for index in range(4)
]
HRFORMER: Rules = (
    *each(r'^conv#\.', 'stem.#.conv.', [(1, 0), (2, 1)]),
    *each(r'^bn#\.', 'stem.#.bn.', [(1, 0), (2, 1)]),
    *each(r'^layer1\.#\.', 'stem.#.', [(index, index + 2) for index in range(4)]),
    *each(r'^transition#\.(\d)\.(?:0\.)?0\.(?=\w+$)', r'transitions.#.\1.conv.', [(1, 0), (2, 1), (3, 2)]),
    *each(r'^transition#\.(\d)\.(?:0\.)?1\.(?=\w+$)', r'transitions.#.\1.bn.', [(1, 0), (2, 1), (3, 2)]),
    *each(r'^stage#\.', 'stages.#.', [(2, 0), (3, 1), (4, 2)]),
    (r'\.fuse_layers\.(\d\.\d)\.0\.(?=\w+$)', r'.exchange.\1.conv.'),
    (r'\.fuse_layers\.(\d\.\d)\.1\.(?=\w+$)', r'.exchange.\1.bn.'),
    *each(r'\.fuse_layers\.(\d\.\d)\.#\.', r'.exchange.\1.#.', HALVINGS),
    (r'^incre_modules\.(\d)\.0\.', r'neck.0.widen.\1.'),
    *each(r'^downsamp_modules\.(\d)\.#\.', r'neck.0.halve.\1.#.', enumerate(UNITS)),
    *each(r'^final_layer\.#\.', 'neck.0.leave.#.', [(0, 'conv'), (1, 'bn')]),
    (r'^classifier\.', 'head.fc.'),
    (r'\.attn\.attn\.relative_position_bias_table', '.attention.part.bias.table'),
    *each(
        r'\.attn\.attn\.#_proj\.', '.attention.part.#.', [('q', 'query'), ('k', 'key'), ('v', 'value'), ('out', 'proj')]
    ),
    (r'\.mlp\.norm1\.', '.feed_forward.part.fc1_norm.norm.'),
    (r'\.mlp\.dw3x3\.', '.feed_forward.part.local.module.conv.'),
    (r'\.mlp\.norm2\.', '.feed_forward.part.local.module.bn.'),
    (r'\.mlp\.norm3\.', '.feed_forward.part.fc2_norm.norm.'),
    *BOTTLENECK,
    *BLOCK,
)
CELLS = [('0', '0.conv'), ('1', '0.bn'), ('3', '1.conv'), ('4', '1.bn'), ('6', '2.conv')]  # ViTAE
REDUCTIONS = [('0', '0.conv'), ('2', '1.conv'), ('3', '1.bn'), ('5', '2.conv')]
VITAE: Rules = (
    *each(r'^layers\.(\d)\.RC\.PCM\.#\.', r'stages.\1.embed.local.#.', REDUCTIONS),
    (r'^layers\.(\d)\.RC\.PRM\.convs\.(\d)\.0\.', r'stages.\1.embed.pyramid.\2.'),
    (r'^layers\.(\d)\.RC\.attn\.w$', r'stages.\1.embed.attend.directions'),
    (r'^layers\.(\d)\.RC\.attn\.kqv\.', r'stages.\1.embed.attend.kqv.'),
    (r'^layers\.(\d)\.RC\.attn\.proj\.', r'stages.\1.embed.attend.proj.'),
    (r'^layers\.(\d)\.RC\.attn\.norm1\.', r'stages.\1.embed.norm.'),
    (r'^layers\.(\d)\.RC\.attn\.norm2\.', r'stages.\1.embed.feed_norm.'),
    (r'^layers\.(\d)\.RC\.attn\.mlp\.', r'stages.\1.embed.feed_forward.'),
    *each(r'^layers\.(\d)\.NC\.(\d+)\.PCM\.#\.', r'stages.\1.blocks.\2.local.#.', CELLS),
    (r'^layers\.(\d)\.NC\.', r'stages.\1.blocks.'),
    *BLOCK,
)
DEEP: Rules = (  # MMPretrain's deep stem consists of ConvModules
    *each(r'^conv1\.#\.', 'stem.#.', [(0, UNITS[0]), (1, UNITS[1]), (3, UNITS[2]), (4, UNITS[3])]),
    (r'^conv1\.6\.', 'stem.2.conv.'),
    (r'^bn1\.', 'stem.2.bn.'),
    (r'^fc\.', 'head.fc.'),
)
# With stride 1 the shortcut has no pooling.
NO_POOLING = each(r'^layer1\.0\.downsample\.#\.', 'layer1.0.downsample.#.', [(1, 0), (2, 1)])


def _keys_first(state: State, own: State) -> None:
    """Reorder keys, queries and values of ViTAE's reduction cells to queries, keys and values."""
    for name in [name for name in state if '.attend.kqv.' in name]:
        key, query, value = state.pop(name).chunk(3)
        state[name.replace('.kqv.', '.qkv.')] = torch.cat([query, key, value])


FORMATS = (
    Format('torchvision ResNet', r'^layer1\.0\.conv1\.', ((r'^fc\.', 'head.fc.'),)),
    Format('timm ResNet-C', r'^conv1\.0\.weight', DEEP),
    Format('timm ResNet-D', r'^conv1\.0\.weight', (*NO_POOLING, *DEEP)),
    Format(
        'timm ResNet-C or D',  # for MMSegmentation's ResNetV1c and ResNetV1d
        r'^conv1\.0\.weight',
        ((r'^conv1\.(?=\d\.)', 'stem.'), (r'^bn1\.', 'stem.7.'), (r'^fc\.', 'head.fc.')),
    ),
    Format(
        'Hugging Face ResNet',
        r'^resnet\.embedder\.embedder\.',
        (
            (r'^resnet\.embedder\.embedder\.convolution\.', 'conv1.'),
            (r'^resnet\.embedder\.embedder\.normalization\.', 'bn1.'),
            *each(r'^resnet\.encoder\.stages\.#\.layers\.', 'layer#.', [(stage, stage + 1) for stage in range(4)]),
            *each(r'\.layer\.#\.convolution\.', '.conv#.', [(0, 1), (1, 2), (2, 3)]),
            *each(r'\.layer\.#\.normalization\.', '.bn#.', [(0, 1), (1, 2), (2, 3)]),
            (r'\.shortcut\.convolution\.', '.downsample.0.'),
            (r'\.shortcut\.normalization\.', '.downsample.1.'),
            (r'^classifier\.1\.', 'head.fc.'),
        ),
    ),
    Format("the authors' HRFormer", r'^incre_modules\.0\.0\.', HRFORMER),
    Format(
        "the authors' ViTAE (their logits need epsilon=1e-8 of vt.ReductionCell)",
        r'^layers\.0\.RC\.PCM\.',
        VITAE,
        change=_keys_first,
    ),
)
