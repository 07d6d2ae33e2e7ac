"""The survey's systems as tables: which parts each chooses, what it costs, how it is validated."""

import inspect
import json
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmpretrain.registry import MODELS as CLASSIFIERS

from vt.models.backbones.stage import PARTS
from vt.models.backbones.token_backbone import merge_options
from vt.registry import MODELS

from .complexity.counting import count_complexity
from .speed.measurement import Measurement, read_record
from .tables import insert, to_markdown

SYSTEMS = Path(__file__).with_name('survey_systems.json')
CONFIG = 'configs/survey/{}_16xb64-300e_in1k.py'
SPEEDS = 'docs/benchmarks/survey/{}_cpu.json'  # as tools/benchmark_survey.sh writes them
TWINS = dict(timm='twin', mmpretrain='mmpretrain')  # libraries, and a system's key for its name there
PARTIAL = (
    'vt.ClassAttention',
    'vt.SparseAttention',
    'vt.PerformerAttention',
    'vt.HadamardAttention',
)  # not of all tokens, or without a map
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
    'vt.TokenizerEmbed': lambda c: (
        f'{c["tokenizer"]["num_tokens"]} tokens of {c["tokenizer"]["type"].removeprefix("vt.")}'
    ),
    'vt.AbsolutePosition': lambda c: 'learned, absolute',
    'vt.ConditionalPosition': lambda c: 'depthwise convolution, added',
    'vt.RelativePositionBias': lambda c: 'relative bias',
    'vt.ContinuousPositionBias': lambda c: 'continuous relative bias',
    'vt.OnMap': lambda c: ' '.join(
        [
            f'{c.get("module", {}).get("kernel_size", 3)}x{c.get("module", {}).get("kernel_size", 3)} depthwise',
            dict(plain='', add='added', gate='as a gate')[c.get('combine', 'plain')],
        ]
    ).strip(),
    'vt.Windows': lambda c: (
        ('spread' if c.get('spread') else 'shifted' if c.get('shift') else '') + f' windows of {_sides(c["window"])}'
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
    'vt.MessengerWindows': lambda c: f'windows of {_sides(c["window"])} with messengers',
    'vt.MessengerBias': lambda c: 'relative bias',
    'vt.MessengerEmbed': lambda c: _phrase(c['embed']) + ', messengers',
    'vt.MessengerMerging': lambda c: '2x2 neighbours merged, messengers too',
}


def read_systems() -> dict[str, dict]:
    """What was published of each system, by its config's name."""
    return json.loads(SYSTEMS.read_text())['systems']


def describe_components(root: Path) -> list[dict[str, str]]:
    """A row a system, a column a component of the survey; parts link to their code, systems to their config."""
    rows = []
    for name, system in read_systems().items():
        path = root / f'configs/_base_/survey/{name}.py'
        config = Config.fromfile(path).system
        cells = dict(system=f'[{system["title"]}](../configs/_base_/survey/{name}.py)')
        if 'backbone_of' in system:
            rows.append(cells | dict.fromkeys(COMPONENTS, f"{system['backbone_of']}'s code"))
            continue
        rows.append(cells | {component: _join(find(config), root) for component, find in COMPONENTS.items()})
    return rows


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
    seen = [*_of_attention(config, 'windows', 'reduce'), *own, *_of_attention(config, 'mix', 'mix_maps', 'local')]
    plain = any(not part.get('windows') and not part.get('reduce') and part.get('type', '') not in PARTIAL
                for part in _parts(config, 'attention'))  # fmt: skip
    return [*seen, *(['all to all'] if plain else [])]


def _norms(config: Config) -> list:
    norms = [stage.get('norm_cfg', {}) for stage in _stages(config)]
    kinds = {'none' if norm is None else str(norm.get('type', 'LN')).removeprefix('vt.') for norm in norms}
    extra = [word for key, word in dict(post_norm='behind the part', layer_scale='LayerScale', rezero='ReZero').items()
             if any(stage.get(key) for stage in _stages(config))]  # fmt: skip
    return [*sorted(kinds), *extra]


def _heads(config: Config) -> list:
    out_type = config.backbone.get('out_type', 'average')
    words = dict(class_tokens='class token', layers='class tokens of all blocks', tokens='class token')
    extra = {'vt.DistillationTokenHead': ['distillation token'], 'vt.TokenLabelHead': ['patches']}
    return [words.get(out_type, out_type), *extra.get(config.get('head', {}).get('type'), [])]


COMPONENTS = {
    'image to token': lambda config: _embeds(config)[:1],
    'token to token': lambda config: _embeds(config)[1:],
    'position': lambda config: [
        *(stage[slot] for stage in _stages(config) for slot in ('position', 'conditional') if stage.get(slot)),
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


def _join(parts: list, root: Path) -> str:
    """Cells of parts, each once, with links to their code."""
    return '; '.join(dict.fromkeys(_word(part, root) for part in parts)) or '-'


def _phrase(part: dict) -> str:
    kind = part.get('type', PARTS['attention'])
    return WORDS[kind](part).strip() if kind in WORDS else kind.removeprefix('vt.')


def _word(part: Any, root: Path) -> str:
    if isinstance(part, str):
        return part
    kind = part.get('type', PARTS['attention'])
    source = Path(inspect.getfile(MODELS.get(kind.removeprefix('vt.')))).relative_to(root)
    return f'[{_phrase(part)}](../{source})'


def _sides(window: Any) -> str:
    sides = window if isinstance(window, (list, tuple)) else (window, window)
    return ' x '.join('all' if side is None else str(side) for side in sides)


def describe_costs(root: Path) -> list[dict[str, str]]:
    """A row a system: parameters and FLOPs beside the published ones, and what validates it."""
    rows = []
    for name, system in read_systems().items():
        config = Config.fromfile(root / CONFIG.format(name))
        size = system.get('image_size', 224)
        with torch.device('cpu' if system.get('backbone_of') == 'MMPretrain' else 'meta'):
            model = CLASSIFIERS.build(config.model)
            model.eval()
            cost = count_complexity(model, torch.zeros(1, 3, size, size), mode='tensor')
        parameters, flops, top1 = system['published']
        rows.append(
            {
                'system': f'[{system["title"]}](../{CONFIG.format(name)})',
                'M parameters': f'{cost.parameters / 1e6:.2f}',
                'published': '-' if parameters is None else f'{parameters}',
                'G FLOPs': f'{cost.flops / 1e9:.2f}',
                'published ': '-' if flops is None else f'{flops}',
                'top-1, published': '-' if top1 is None else f'{top1}',
                'validated by': _validation(system),
                'note': system.get('why', ''),
            }
        )
    return rows


def _validation(system: dict) -> str:
    owner = system.get('backbone_of', 'vt.')
    if not owner.startswith('vt.'):
        return f"{owner}'s code"
    return f"timm's weights and logits, `{system['twin']}`" if 'twin' in system else 'plain loops, float64'


def describe_speeds(root: Path) -> list[dict[str, str]]:
    """A row a system that was measured beside its public twins: milliseconds, and how many times faster and smaller."""
    rows = []
    for name, system in read_systems().items():
        path = root / SPEEDS.format(name)
        if path.exists():
            own, *twins = Path(CONFIG.format(name)).stem, *_twins(system)
            rows.append({'system': system['title']} | _speed_cells(read_record(path).results, own, twins))
    return rows


def _twins(system: dict) -> list[str]:
    return [f'{library}:{system[key]}' for library, key in TWINS.items() if key in system]


def _speed_cells(results: list[Measurement], own: str, twins: list[str]) -> dict[str, str]:
    found = {(entry.kind, entry.model): entry for entry in results}
    cells = {}
    for kind in ('inference', 'training'):
        cells[f'{kind} (ms)'] = f'{1000 * found[kind, own].median:.0f}'
        for twin, library in zip_longest(twins, TWINS):
            ratios = ('-', '-')
            if twin:
                other, ours = found[kind, twin], found[kind, own]
                ratios = f'{other.median / ours.median:.2f}x', f'{ours.peak_memory / other.peak_memory:.2f}x'
            cells[f'faster than {library}, {kind}'], cells[f'memory of {library}, {kind}'] = ratios
    return cells


def write_page(page: Path, root: Path) -> None:
    """Write the page's tables."""
    if speeds := describe_speeds(root):
        insert(page, 'survey speed', to_markdown(speeds))
    insert(page, 'survey components', to_markdown(describe_components(root)))
    insert(page, 'survey costs', to_markdown(describe_costs(root)))
