"""Which parts the survey's systems choose, component by component, as their configs say it."""

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmengine.config import Config

from vt.models.backbones.stage import PARTS
from vt.models.backbones.token_backbone import merge_options
from vt.registry import MODELS

from .markdown import ROOT, Rows

SYSTEMS = Path(__file__).with_name('survey_systems.json')
PARTIAL = (
    'vt.ClassAttention',
    'vt.SparseAttention',
    'vt.PerformerAttention',
    'vt.HadamardAttention',
)  # not of all tokens, or without a map
NORMS = {'BN': 'BN', 'vt.TokenBatchNorm': 'BN', 'BatchNorm2d': 'BN', 'InstanceNorm2d': 'IN'}  # others are LN
# What stands for a part's config in a cell; a part that is not here goes by its name.
WORDS = {
    'vt.PatchEmbed': lambda c: (
        f'{c["kernel_size"]}x{c["kernel_size"]} patches' + (f', stride {c["stride"]}' if c.get('stride') else '')
    ),
    'vt.PatchMerging': lambda c: '2x2 neighbours merged',
    'vt.ConvolutionalEmbed': lambda c: (
        f'{len(c["layers"])} convolution{"s" * (len(c["layers"]) > 1)}'
        + (f', {c["patch"]["kernel_size"]}x{c["patch"]["kernel_size"]} patches' if c.get('patch') else '')
    ),
    'vt.SoftSplit': lambda c: '7x7 pixels unfolded, stride 4',
    'vt.TokenizerEmbed': lambda c: (
        f'{c["tokenizer"]["num_tokens"]} tokens of {c["tokenizer"]["type"].removeprefix("vt.")}'
    ),
    'vt.AbsolutePosition': lambda c: 'learned, absolute',
    'vt.PEG': lambda c: 'depthwise convolution, added',
    'vt.SinusoidalPosition': lambda c: 'sinusoidal',
    'vt.RelativePositionBias': lambda c: 'relative bias',
    'vt.ContinuousPositionBias': lambda c: 'continuous relative bias',
    'vt.ReductionCell': lambda c: f'{c["kernel_size"]}x{c["kernel_size"]} dilated convolutions, stride {c["stride"]}',
    'vt.ProgressiveSampling': lambda c: f'points that move in {c["rounds"]} rounds',
    'vt.OnMap': lambda c: ' '.join(
        [
            f'{c.get("module", {}).get("kernel_size", 3)}x{c.get("module", {}).get("kernel_size", 3)} depthwise',
            *dict(plain=[], add=['added'], gate=['as a gate'])[c.get('combine', 'plain')],
            *([f'of {c["of"]}'] if 'of' in c else []),
        ]
    ),
    'vt.Windows': lambda c: (
        ('dilated ' if c.get('dilated') else 'shifted ' if c.get('shift') else '')
        + ('stripes' if None in _sides(c['window']) else 'windows')
    ),
    'vt.StridedReduction': lambda c: (
        'keys of a depthwise strided convolution' if c.get('depthwise') else 'keys of a strided convolution'
    ),
    'vt.PoolingReduction': lambda c: 'keys of 7x7 averages',
    'vt.PyramidReduction': lambda c: 'keys of a pyramid of averages',
    'vt.HeadMixing': lambda c: 'heads mixed',
    'vt.ClassAttention': lambda c: 'class attention',
    'vt.CosineAttention': lambda c: 'cosines',
    'vt.SparseAttention': lambda c: ' and '.join(
        ['neighbours by a mask'] * ('near' in c) + ['a coarser grid by a mask'] * ('stride' in c)
    ),
    'vt.PerformerAttention': lambda c: 'random features',
    'vt.HadamardAttention': lambda c: f'{c["kernel_size"]}x{c["kernel_size"]} neighbours, Hadamard products',
    'vt.MessengerWindows': lambda c: 'windows with messengers',
    'vt.MessengerBias': lambda c: 'relative bias',
    'vt.MessengerEmbed': lambda c: _phrase(c['embed']) + ', messengers',
    'vt.MessengerMerging': lambda c: '2x2 neighbours merged, messengers too',
}


def read_systems() -> dict[str, dict]:
    """What was published of each system, by its config's name."""
    return json.loads(SYSTEMS.read_text())['systems']


def describe_systems() -> Rows:
    """A row a system, a column a component of the survey; parts link to their code, systems to their config."""
    return [
        dict(system=_link(name, system)) | {component: '; '.join(found) or '-' for component, found in choices.items()}
        for name, system, choices in _find_choices()
    ]


def describe_choices() -> Rows:
    """A row for each choice in each component: the systems that take it, in the order of :func:`read_systems`."""
    takers: dict[tuple[str, str], list[str]] = {}
    for name, system, choices in _find_choices():
        for component, found in choices.items():
            for choice in found or ['none']:
                takers.setdefault((component, choice), []).append(_link(name, system))
    order = [*COMPONENTS]
    links = [_link(name, system) for name, system in read_systems().items()]
    rows = sorted(takers.items(), key=lambda row: (order.index(row[0][0]), -len(row[1])))
    return [
        dict(component=component, choice=choice, number=f'{len(found)}', systems=_enumerate(found, links))
        for (component, choice), found in rows
    ]


def _enumerate(found: list[str], everything: list[str]) -> str:
    rest = [link for link in everything if link not in found]
    if len(rest) > len(found) / 3:
        return ', '.join(found)
    return f'all but {", ".join(rest)}' if rest else 'all'


def _find_choices() -> list[tuple[str, dict, dict[str, list[str]]]]:
    """Of each system its name, what is known of it, and its parts by component, each once, with links to their code."""
    found = []
    for name, system in read_systems().items():
        config = Config.fromfile(ROOT / f'configs/_base_/models/{name}.py').system
        told = system.get('components', {})  # where the config's parts don't show it
        choices = {
            component: told[component] if component in told else [*dict.fromkeys(_word(part) for part in find(config))]
            for component, find in COMPONENTS.items()
        }
        found.append((name, system, choices))
    return found


def _link(name: str, system: dict) -> str:
    return f'[{system["title"]}](../configs/_base_/models/{name}.py)'


def _stages(config: Config) -> list[dict]:
    """Each stage's options, with those that all share."""
    return merge_options(config.backbone.get('every_stage', {}), config.backbone.stages)


def _parts(config: Config, slot: str) -> list[dict]:
    """Configs that stand in a slot of any stage, branches of an attention too."""
    found = []
    for stage in _stages(config):
        entries = stage.get(slot, {}) or {}
        for entry in entries if isinstance(entries, list) else [entries]:
            found += [{**entry, **branch} for branch in entry.get('branches', [{}])]
    return found


def _of_attention(config: Config, *slots: str) -> list[dict]:
    return [part[slot] for part in _parts(config, 'attention') for slot in slots if part.get(slot)]


def _embeds(config: Config) -> list[dict]:
    return [stage['embed'] for stage in config.backbone.stages if stage.get('embed')]


def _attentions(config: Config) -> list[dict]:
    own = [part for part in _parts(config, 'attention') if part.get('type', PARTS['attention']) != PARTS['attention']]
    own = [part for part in own if part['type'] in WORDS]
    seen = [*_of_attention(config, 'windows', 'reduce'), *own, *_of_attention(config, 'mix', 'mix_maps')]
    seen += [part | dict(of='the values') for part in _of_attention(config, 'local')]
    plain = any(not part.get('windows') and not part.get('reduce') and part.get('type', '') not in PARTIAL
                for part in _parts(config, 'attention'))  # fmt: skip
    return [*(['all to all'] if plain else []), *seen]


def _norms(config: Config) -> list:
    norms = [stage.get('norm_cfg', {}) for stage in _stages(config)]
    kinds = {_norm_kind(norm) for norm in norms}
    inside = {_norm_kind(norm) for stage in _stages(config) for norm in _norms_inside(stage)} - kinds - {'none'}
    extra = [word for key, word in dict(post_norm='behind the part', layer_scale='LayerScale', rezero='ReZero').items()
             if any(stage.get(key) for stage in _stages(config))]  # fmt: skip
    return [*sorted(kinds), *(f'{kind} inside of parts' for kind in sorted(inside)), *extra]


def _norm_kind(norm: dict | str | None) -> str:
    if norm is None:
        return 'none'
    return NORMS.get(norm if isinstance(norm, str) else norm.get('type'), 'LN')


def _norms_inside(part: Any) -> Iterator[dict | str | None]:
    """Normalisations in the configs of a part's parts."""
    for key, value in part.items():
        entries = value if isinstance(value, list) else [value]
        for entry in entries:
            if key in ('norm', 'norm_cfg') and entry is not True:
                yield entry
            elif isinstance(entry, dict):
                yield from _norms_inside(entry)


def _heads(config: Config) -> list:
    out_type = config.backbone.get('out_type', 'average')
    words = dict(class_tokens='class token', layers='class tokens of all blocks', tokens='class token')
    extra = {'vt.DistillationTokenHead': ['distillation token'], 'vt.TokenLabelHead': ['patches']}
    return [words.get(out_type, out_type), *extra.get(config.get('head', {}).get('type'), [])]


COMPONENTS = {
    'image to token': lambda config: _embeds(config)[:1],
    'token to token': lambda config: _embeds(config)[1:],
    'position': lambda config: [
        *(stage[slot] for stage in _stages(config) for slot in ('position', 'peg') if stage.get(slot)),
        *_of_attention(config, 'bias'),
    ],
    'attention': _attentions,
    'feed-forward': lambda config: [
        'MLP',
        *(part['local'] for part in _parts(config, 'feed_forward') if part.get('local')),
        *(stage['between'] for stage in _stages(config) if stage.get('between')),
    ],
    'normalisation': _norms,
    'head': _heads,
}


def _phrase(part: dict) -> str:
    kind = part.get('type', PARTS['attention'])
    return WORDS[kind](part) if kind in WORDS else kind.removeprefix('vt.')


def _word(part: Any) -> str:
    if isinstance(part, str):
        return part
    kind = part.get('type', PARTS['attention'])
    source = Path(inspect.getfile(MODELS.get(kind.removeprefix('vt.')))).relative_to(ROOT)
    return f'[{_phrase(part)}](../{source})'


def _sides(window: Any) -> tuple:
    return tuple(window) if isinstance(window, (list, tuple)) else (window, window)
