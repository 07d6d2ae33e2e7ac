"""Check ``optim_wrapper.paramwise_cfg``: which parameters each rule applies to.

mmengine applies to each parameter the longest of the ``custom_keys`` that its name contains. The rules for norms,
biases and depth-wise convolutions apply only to parameters without such a key. A factor that the key does not set is
then 1.
"""

import difflib
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
NEAR = 0.8  # similarity of two names, at most 1, above which one may be a misspelling of the other


@dataclass
class Rule:
    """One of ``custom_keys``."""

    key: str  # part of a parameter's name
    options: dict[str, Any]  # its settings, such as lr_mult
    names: list[str] = field(default_factory=list)  # parameters that it applies to
    shadowed: int = 0  # number of parameters that match, but follow a longer key


def check_parameter_rules(
    model: nn.Module, optim_wrapper: dict, own: Container[str] | None = None
) -> list[dict[str, str]]:
    """Compare ``paramwise_cfg`` with a model.

    Args:
        model: the model to train.
        optim_wrapper: config of the optimizer wrapper.
        own: keys that the config sets itself and that must match a parameter; keys of an inherited recipe may be for
            other models. None for all keys.

    Returns:
        One row per custom key with the number of parameters and its factors.

    Raises:
        UserError: the constructor does not read a setting; or a key matches no parameter and changes the learning rate
            or is similar to a name in the model.
    """
    options = optim_wrapper.get('paramwise_cfg') or {}
    constructor = str(optim_wrapper.get('constructor', 'DefaultOptimWrapperConstructor')).split('.')[-1]
    _check_readers(options, constructor)
    if 'custom_keys' not in options or 'custom_keys' not in READ.get(constructor, ()):
        return []
    rules = match_parameters(model, options['custom_keys'])
    for rule in rules:
        if own is None or rule.key in own:
            _check_match(rule, model)
    return [
        dict(key=rule.key, parameters=f'{len(rule.names):,}')
        | {name: f'{rule.options.get(name, 1.0):g}' for name in ('lr_mult', 'decay_mult')}
        for rule in rules
    ]


def match_parameters(model: nn.Module, custom_keys: dict[str, dict]) -> list[Rule]:
    """Return one rule per custom key, with the parameters that it applies to."""
    rules = {key: Rule(key, custom_keys[key]) for key in sorted(sorted(custom_keys), key=len, reverse=True)}
    for name, _ in model.named_parameters():
        matching = [rule for key, rule in rules.items() if key in (name if '.' in name else f'.{name}')]
        for rule in matching[:1]:
            rule.names.append(name)
        for rule in matching[1:]:
            rule.shadowed += 1
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
