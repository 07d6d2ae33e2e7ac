"""What a table of names is, and the rules that many of them share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torch import Tensor

Rules = tuple[tuple[str, str], ...]
State = dict[str, Tensor]


@dataclass(frozen=True)
class Format:
    """How the tensors of a file become ours, but for queries, keys and values apart, which every format may have.

    Attributes:
        name: for the log: whose names they are, and the family.
        mark: pattern of a name that every such file has.
        rules: a pattern and what stands for it, tried in order on every name.
        numbered_through: ``blocks`` are counted from the first stage to the last.
        neighbours: pattern of our names whose last axis holds the channels of 2x2 neighbours, which this format keeps
            neighbour by neighbour, down before right; ours are channel by channel, right before down.
        change: what a name alone does not say, in place: takes the tensors under our names, and the model's own.
    """

    name: str
    mark: str
    rules: Rules
    numbered_through: bool = False
    neighbours: str = ''
    change: Callable[[State, State], None] | None = None


def each(pattern: str, replacement: str, pairs: Iterable[tuple[object, object]]) -> Rules:
    """A rule for each pair: what ``#`` is in the pattern and in the replacement."""
    return tuple((pattern.replace('#', str(theirs)), replacement.replace('#', str(ours))) for theirs, ours in pairs)


FROM_ONE = [(stage + 1, stage) for stage in range(4)]  # authors' stages begin at 1, ours at 0

# Blocks: timm's names, which most authors share; MMPretrain's; transformers'.
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
