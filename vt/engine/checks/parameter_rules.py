"""Check ``optim_wrapper.paramwise_cfg``: which parameters each rule applies to, and rules without their full effect.

mmengine applies to each parameter the longest of the ``custom_keys`` that its name contains. The rules for norms,
biases and depth-wise convolutions apply only to parameters without such a key. A factor that the key does not set is
then 1.
"""

import difflib
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from vt.errors import UserError

CUSTOM = 'optim_wrapper.paramwise_cfg.custom_keys'
# Options of paramwise_cfg that each optimizer constructor reads; other constructors are not checked.
READ = {
    'DefaultOptimWrapperConstructor': (
        *('bias_decay_mult', 'bias_lr_mult', 'bypass_duplicate', 'custom_keys', 'dcn_offset_lr_mult'),
        *('dwconv_decay_mult', 'flat_decay_mult', 'norm_decay_mult'),
    ),
    'LearningRateDecayOptimWrapperConstructor': (
        *('bias_decay_mult', 'custom_keys', 'flat_decay_mult', 'layer_decay_rate', 'norm_decay_mult'),
    ),
    'LayerDecayOptimizerConstructor': ('decay_rate', 'decay_type', 'num_layers'),
}
NORMS = (
    *(nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm),
    *(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d, nn.GroupNorm, nn.LayerNorm),
)
NEAR = 0.8  # similarity of two names, at most 1, above which one may be a misspelling of the other


@dataclass
class Rule:
    """One of ``custom_keys``."""

    key: str  # part of a parameter's name
    options: dict[str, Any]  # its settings, such as lr_mult
    names: list[str] = field(default_factory=list)  # parameters that it applies to
    shadowed: dict[str, list[str]] = field(default_factory=dict)  # that match, but follow a longer key, by that key


def check_parameter_rules(
    model: nn.Module, optim_wrapper: dict, own: Container[str] | None = None
) -> tuple[list[dict[str, str]], list[str]]:
    """Compare ``paramwise_cfg`` with a model.

    Args:
        model: the model to train.
        optim_wrapper: config of the optimizer wrapper.
        own: keys that the config sets itself and that must match a parameter; keys of an inherited recipe may be for
            other models. None for all keys.

    Returns:
        One row per custom key with the number of parameters and its factors, and warnings about parameters that lose a
        rule to another one.

    Raises:
        UserError: the constructor does not read a setting; or a key matches no parameter and changes the learning rate
            or is similar to a name in the model.
    """
    options = optim_wrapper.get('paramwise_cfg') or {}
    constructor = str(optim_wrapper.get('constructor', 'DefaultOptimWrapperConstructor')).split('.')[-1]
    _check_readers(options, constructor)
    if 'custom_keys' not in options or 'custom_keys' not in READ.get(constructor, ()):
        return [], []
    rules = match_parameters(model, options['custom_keys'])
    for rule in rules:
        if own is None or rule.key in own:
            _check_match(rule, model)
    rows = [
        dict(key=rule.key, parameters=f'{len(rule.names):,}')
        | {name: f'{rule.options.get(name, 1.0):g}' for name in ('lr_mult', 'decay_mult')}
        for rule in rules
    ]
    return rows, [*_lost_rules(rules, options, model), *_shadows(rules)]


def match_parameters(model: nn.Module, custom_keys: dict[str, dict]) -> list[Rule]:
    """Return one rule per custom key, with the parameters that it applies to."""
    rules = {key: Rule(key, custom_keys[key]) for key in sorted(sorted(custom_keys), key=len, reverse=True)}
    for name, _ in model.named_parameters():
        matching = [rule for key, rule in rules.items() if key in (name if '.' in name else f'.{name}')]
        for rule in matching[:1]:
            rule.names.append(name)
        for rule in matching[1:]:
            rule.shadowed.setdefault(matching[0].key, []).append(name)
    return [rules[key] for key in custom_keys]


def find_moving_statistics(model: nn.Module, groups: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a warning if statistics of a model in training mode change in layers that are not trained.

    Such a normalisation is in training mode, and neither its weights nor those of the layer before it are trained.

    Args:
        model: the model.
        groups: parameter groups of the optimizer; a warm-up may begin at 0 below ``initial_lr``.
    """
    rated = (parameter for group in groups if group.get('initial_lr', group['lr']) for parameter in group['params'])
    trained = {id(parameter) for parameter in rated if parameter.requires_grad}
    is_trained, moving = False, []
    for name, part in model.named_modules():
        own = [id(parameter) in trained for parameter in part.parameters(recurse=False)]
        if getattr(part, 'running_mean', None) is None:
            is_trained = any(own) if own else is_trained
        elif part.training and not any(own) and not is_trained:
            moving.append(name)
    if moving:
        subject = f'running statistics of {len(moving)} normalisations, such as {moving[0]}'
        advice = 'to freeze these, too, set frozen_stages of the backbone, or wrap it in vt.FrozenBackbone'
        yield f'{subject}, change in training, although their layers are not trained (learning rate 0): {advice}'


def _check_readers(options: dict[str, Any], constructor: str) -> None:
    known = READ.get(constructor, ())  # empty for an unknown constructor
    for name in options if known else ():
        if name not in known and not (name == 'force_default_settings' or name.startswith('_')):
            where = f'optim_wrapper.paramwise_cfg.{name} has no effect: {constructor} reads {", ".join(known)}'
            raise UserError(f'{where}; correct or remove it')
    for key, rule in options.get('custom_keys', {}).items() if constructor.startswith('LearningRateDecay') else ():
        if rule.get('lr_mult', 1) != 1:
            where = f'{CUSTOM}.{key}.lr_mult has no effect: {constructor} sets the rate by the depth of a layer'
            raise UserError(f'{where}; remove it')


def _check_match(rule: Rule, model: nn.Module) -> None:
    """Refuse a key that matches nothing, unless it looks like one that a recipe has for other models."""
    if rule.names or rule.shadowed:
        return
    parts = {part for name, _ in model.named_parameters() for part in name.split('.')}
    near = difflib.get_close_matches(rule.key.strip('.').split('.')[-1], parts, n=1, cutoff=NEAR)
    if near or {*rule.options} - {'decay_mult'}:
        meant = f'did you mean {near[0]}?' if near else 'correct or remove it'
        raise UserError(f'{CUSTOM}.{rule.key} matches no parameter of the model: {meant}')


def _lost_rules(rules: list[Rule], options: dict[str, Any], model: nn.Module) -> Iterator[str]:
    """Yield warnings about keys without ``decay_mult`` that override the rules for norms, biases and so on."""
    ruled_by = {name: rule.key for rule in rules for name in rule.names if 'decay_mult' not in rule.options}
    lost: Counter[tuple[str, str]] = Counter()
    for prefix, module in model.named_modules():
        for name, parameter in module.named_parameters(prefix, recurse=False):
            kinds = dict(  # in mmengine's order
                norm_decay_mult=isinstance(module, NORMS),
                bias_decay_mult=name.endswith('bias'),
                dwconv_decay_mult=isinstance(module, nn.Conv2d) and module.in_channels == module.groups,
                flat_decay_mult=parameter.ndim == 1,
            )
            rule = next((rule for rule, holds in kinds.items() if holds and options.get(rule) is not None), None)
            if name in ruled_by and rule and options[rule] != 1:
                lost[ruled_by[name], rule] += 1
    for (key, name), number in lost.items():
        message = f'{CUSTOM}.{key} overrides {name}={options[name]:g} for {number} parameters, which get decay_mult=1'
        yield f'{message}: set decay_mult={options[name]:g} in this key, or add a longer key for these parameters'


def _shadows(rules: list[Rule]) -> Iterator[str]:
    """Yield warnings about keys without effect, and parameters with the full rate, because of a longer key."""
    by_key = {rule.key: rule for rule in rules}
    for rule in rules:
        if rule.shadowed and not rule.names:
            longer = ', '.join(rule.shadowed)
            yield f'{CUSTOM}.{rule.key} has no effect, because all its parameters match {longer}: remove it'
        for longer, names in rule.shadowed.items():
            if 'lr_mult' in rule.options and 'lr_mult' not in by_key[longer].options:
                message = f'{CUSTOM}.{rule.key} has no effect on {len(names)} parameters, such as {names[0]}'
                yield f'{message}: the longer key {longer} applies to them with lr_mult=1; set lr_mult there, too'
