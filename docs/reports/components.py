"""Which parts the survey's models choose, component by component, as their configs say it."""

import inspect
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pandas as pd
import yaml
from jinja2 import Environment
from mmengine.config import Config

from vt.models.survey.backbones.stage import PARTS
from vt.models.survey.backbones.token_backbone import merge_options
from vt.registry import MODELS

from .markdown import ROOT, Rows

SURVEY_MODELS, WORDS = (Path(__file__).with_name(name) for name in ('survey_models.json', 'survey_words.yml'))
# Attentions that are not of all tokens, or without a map.
PARTIAL = ('vt.ClassAttention', 'vt.SparseAttention', 'vt.PerformerAttention', 'vt.HadamardAttention')
NORMS = {'BN': 'BN', 'vt.TokenBatchNorm': 'BN', 'BatchNorm2d': 'BN', 'InstanceNorm2d': 'IN', None: 'none'}  # else LN
EXTRAS = dict(post_norm='after the part', layer_scale='LayerScale', rezero='ReZero')
HEADS = dict(class_tokens='class token', layers='class tokens of all blocks', tokens='class token')
HEAD_TOKENS = {'vt.DistillationTokenHead': ['distillation token'], 'vt.TokenLabelHead': ['patches']}


@cache
def read_survey_models() -> dict[str, dict]:
    """What was published of each model, by its config's name."""
    return json.loads(SURVEY_MODELS.read_text())['models']


def describe_survey_models() -> Rows:
    """A row a model, a column a component of the survey; parts link to their code, models to their config."""
    return [
        dict(model=entry) | {component: '; '.join(found) or '-' for component, found in choices.items()}
        for entry, choices in find_choices().items()
    ]


def describe_choices() -> Rows:
    """A row for each choice in each component: the models that take it, in the order of :func:`read_survey_models`."""
    everything = find_choices()
    taken = pd.DataFrame(
        [
            (component, choice, entry)
            for component in next(iter(everything.values()))
            for entry, choices in everything.items()
            for choice in choices[component] or ['none']
        ],
        columns=['component', 'choice', 'model'],
    )
    rows = taken.groupby(['component', 'choice'], sort=False)['model'].agg([len, list]).reset_index()
    components = [*dict.fromkeys(rows['component'])]
    ordered = sorted(rows.itertuples(), key=lambda row: (components.index(row.component), -row.len))
    return [
        dict(
            component=row.component,
            choice=row.choice,
            number=f'{row.len}',
            models=_enumerate(row.list, everything),
        )
        for row in ordered
    ]


def _enumerate(found: list[str], everything: dict) -> str:
    rest = [link for link in everything if link not in found]
    if len(rest) > len(found) / 3:
        return ', '.join(found)
    return f'all but {", ".join(rest)}' if rest else 'all'


@cache
def find_choices() -> dict[str, dict[str, list[str]]]:
    """Of each model, by its link, its parts by component, each once, with links to their code."""
    found = {}
    for name, entry in read_survey_models().items():
        config = Config.fromfile(ROOT / f'configs/_base_/models/{name}.py').architecture
        told = entry.get('components', {})  # where the config's parts don't show it
        link = f'[{entry["title"]}](../configs/_base_/models/{name}.py)'
        found[link] = {
            component: told[component] if component in told else [*dict.fromkeys(_word(part) for part in find(config))]
            for component, find in COMPONENTS.items()
        }
    return found


def _stages(config: Config) -> list[dict]:
    """Each stage's options, with those that all share."""
    return merge_options(config.backbone.get('every_stage', {}), config.backbone.stages)


def _parts(config: Config, slot: str, *inner: str) -> list[dict]:
    """Configs in a slot of any stage, branches of an attention too; or those in slots inside of them."""
    found = []
    for stage in _stages(config):
        entries = stage.get(slot) or {}
        for entry in entries if isinstance(entries, list) else [entries]:
            found += [{**entry, **branch} for branch in entry.get('branches', [{}])]
    return [part[name] for part in found for name in inner if part.get(name)] if inner else found


def _embeds(config: Config) -> list[dict]:
    return [stage['embed'] for stage in config.backbone.stages if stage.get('embed')]


def _positions(config: Config) -> list[dict]:
    stages = [stage[slot] for stage in _stages(config) for slot in ('position', 'peg') if stage.get(slot)]
    return stages + _parts(config, 'attention', 'bias')


def _attentions(config: Config) -> list:
    parts = _parts(config, 'attention')
    plain = [part for part in parts if not part.get('windows') and not part.get('reduce')]
    return [
        *['all to all' for part in plain if part.get('type') not in PARTIAL],
        *_parts(config, 'attention', 'windows', 'reduce'),
        *[part for part in parts if part.get('type', PARTS['attention']) in _words().keys() - {PARTS['attention']}],
        *_parts(config, 'attention', 'mix', 'mix_maps'),
        *[part | dict(of='the values') for part in _parts(config, 'attention', 'local')],
    ]


def _feed_forwards(config: Config) -> list:
    between = [stage['between'] for stage in _stages(config) if stage.get('between')]
    return ['MLP', *_parts(config, 'feed_forward', 'local'), *between]


def _norms(config: Config) -> list[str]:
    stages = _stages(config)
    kinds = {_norm_kind(stage.get('norm_cfg', {})) for stage in stages}
    inside = {_norm_kind(norm) for stage in stages for norm in _norms_inside(stage)} - kinds - {'none'}
    extra = [word for key, word in EXTRAS.items() if any(stage.get(key) for stage in stages)]
    return [*sorted(kinds), *(f'{kind} inside of parts' for kind in sorted(inside)), *extra]


def _norm_kind(norm: dict | str | None) -> str:
    return NORMS.get(norm.get('type', '') if isinstance(norm, dict) else norm, 'LN')


def _norms_inside(part: dict) -> Iterator[dict | str | None]:
    """Normalisations in the configs of a part's parts."""
    for key, value in part.items():
        for entry in value if isinstance(value, list) else [value]:
            if key in ('norm', 'norm_cfg') and entry is not True:
                yield entry
            elif isinstance(entry, dict):
                yield from _norms_inside(entry)


def _heads(config: Config) -> list[str]:
    out_type = config.backbone.get('out_type', 'average')
    return [HEADS.get(out_type, out_type), *HEAD_TOKENS.get(config.get('head', {}).get('type'), [])]


COMPONENTS = {
    'image to token': lambda config: _embeds(config)[:1],
    'token to token': lambda config: _embeds(config)[1:],
    'position': _positions,
    'attention': _attentions,
    'feed-forward': _feed_forwards,
    'normalisation': _norms,
    'head': _heads,
}


@cache
def _words() -> dict[str, str]:
    return yaml.safe_load(WORDS.read_text())


def _phrase(part: dict) -> str:
    kind = part.get('type', PARTS['attention'])
    words = Environment().from_string(_words().get(kind, kind.removeprefix('vt.')))
    return words.render(part, phrase=_phrase)


def _word(part: dict | str) -> str:
    if isinstance(part, str):
        return part
    kind = part.get('type', PARTS['attention'])
    source = Path(inspect.getfile(MODELS.get(kind.removeprefix('vt.')))).relative_to(ROOT)
    return f'[{_phrase(part)}](../{source})'
