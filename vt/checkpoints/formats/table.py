"""Tables of names, and rules that many formats share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torch import Tensor

Rules = tuple[tuple[str, str], ...]
State = dict[str, Tensor]


@dataclass(frozen=True)
class Format:
    """Conversion of the tensors of a file to ours. Separate queries, keys and values are handled for all formats.

    Attributes:
        name: origin and family of the names, for the log.
        mark: pattern of a name that every such file has.
        rules: patterns and replacements, applied in order to every name.
        numbered_through: whether ``blocks`` are numbered across stages.
        neighbours: pattern of our names whose last axis contains the channels of 2x2 neighbours. This format orders
            them by neighbour, down before right; ours are ordered by channel, right before down.
        change: function for further changes in place; its arguments are the tensors under our names and those of the
            model.
    """

    name: str
    mark: str
    rules: Rules
    numbered_through: bool = False
    neighbours: str = ''
    change: Callable[[State, State], None] | None = None


def each(pattern: str, replacement: str, pairs: Iterable[tuple[object, object]]) -> Rules:
    """Return a rule for each pair of values that replace ``#`` in the pattern and in the replacement."""
    return tuple((pattern.replace('#', str(theirs)), replacement.replace('#', str(ours))) for theirs, ours in pairs)


FROM_ONE = [(stage + 1, stage) for stage in range(4)]  # authors' stages start at 1, ours at 0

# Names in blocks: timm and most authors; MMPretrain; transformers.
BLOCK: Rules = (
    (r'\.norm1\.', '.attention.norm.'),
    (r'\.norm2\.', '.feed_forward.norm.'),
    (r'\.mlp\.fc1', '.feed_forward.part.fc1'),
    (r'\.mlp\.fc2', '.feed_forward.part.fc2'),
    (r'\.mlp\.dwconv(\.dwconv)?', '.feed_forward.part.local.module.conv'),
    (r'\.attn\.sr\.', '.attention.part.reduce.convolution.'),
    (r'\.attn\.(sr_)?norm\.', '.attention.part.reduce.norm.'),
    (r'\.attn\.q\.', '.attention.part.query.'),
    (r'\.attn\.kv\.', '.attention.part.key_value.'),
    (r'\.attn\.k\.', '.attention.part.key.'),
    (r'\.attn\.v\.', '.attention.part.value.'),
    (r'\.attn\.', '.attention.part.'),
    (r'^head\.(?!fc)', 'head.fc.'),
    (r'^head_dist\.', 'head.fc_distillation.'),
)
MM_BLOCK: Rules = (
    (r'\.attn\.w_msa\.', '.attn.'),
    (r'\.ln1\.', '.norm1.'),
    (r'\.ln2\.', '.norm2.'),
    (r'\.ffn\.layers\.0\.0\.', '.mlp.fc1.'),
    (r'\.ffn\.layers\.1\.', '.mlp.fc2.'),
    (r'^head\.layers\.head\.', 'head.fc.'),
    (r'^head\.layers\.head_dist\.', 'head.fc_distillation.'),
)
HF_BLOCK: Rules = (
    (r'\.attention\.(?:self\.|attention\.)?(query|key|value)\.', r'.attention.part.\1.'),
    (r'\.attention\.([qkv])_proj\.', r'.attn.\1.'),
    (r'\.attention\.(?:output\.dense|o_proj|proj)\.', '.attention.part.proj.'),
    (r'\.(?:intermediate\.dense|mlp\.dense1)\.', '.mlp.fc1.'),
    (r'\.(?:output\.dense|mlp\.dense2)\.', '.mlp.fc2.'),
    (r'\.(?:layernorm_before|layer_norm_1)\.', '.norm1.'),
    (r'\.(?:layernorm_after|layer_norm_2)\.', '.norm2.'),
    (r'\.attention\.(?:self\.)?(?:sequence|spatial)_reduction\.', '.attn.sr.'),
    (r'\.attention\.(?:self\.)?layer_norm\.', '.attn.norm.'),
    (r'^(?:cls_)?classifier\.', 'head.fc.'),
    (r'^distillation_classifier\.', 'head.fc_distillation.'),
)
