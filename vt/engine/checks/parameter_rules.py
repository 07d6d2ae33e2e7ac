"""Which parameters each rule of ``optim_wrapper.paramwise_cfg`` rules, and which rules do not what they seem to.

mmengine gives each parameter the longest of the ``custom_keys`` that its name contains, and only where there is none
the rules for norms, biases and depth-wise convolutions. What a key leaves out is then 1, whatever other rules say.
"""

import difflib
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from vt.errors import UserError

CUSTOM = 'optim_wrapper.paramwise_cfg.custom_keys'
# What each constructor of an optimizer reads of paramwise_cfg; of others nothing is known.
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
NEAR = 0.8  # likeness of two names, of 1, from which on one is a misspelling of the other


@dataclass
class Rule:
    """One of the custom keys."""

    key: str  # parts of names
    options: dict[str, Any]  # what it sets
    names: list[str] = field(default_factory=list)  # of the parameters that it rules
    shadowed: dict[str, list[str]] = field(default_factory=dict)  # names that a longer key rules, by that key


def check_parameter_rules(
    model: nn.Module, optim_wrapper: dict, own: Container[str] | None = None
) -> tuple[list[dict[str, str]], list[str]]:
    """Compare ``paramwise_cfg`` with a model.

    Args:
        model: what is trained.
        optim_wrapper: its section of the config.
        own: keys that a config sets itself, which must match something; a recipe that it inherits may have others, for
            other models. None for all.

    Returns:
        A row a custom key, with the number of parameters and its factors; and warnings: parameters that lose a rule by
        another one.

    Raises:
        UserError: a setting that the constructor doesn't read; a key that changes the learning rate and matches no
            parameter, or that is misspelt.
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
    """The custom keys, each with the parameters that it rules."""
    rules = {key: Rule(key, custom_keys[key]) for key in sorted(sorted(custom_keys), key=len, reverse=True)}
    for name, _ in model.named_parameters():
        matching = [rule for key, rule in rules.items() if key in (name if '.' in name else f'.{name}')]
        for rule in matching[:1]:
            rule.names.append(name)
        for rule in matching[1:]:
            rule.shadowed.setdefault(matching[0].key, []).append(name)
    return [rules[key] for key in custom_keys]


def _check_readers(options: dict[str, Any], constructor: str) -> None:
    known = READ.get(constructor, ())  # empty: nothing is known of it
    for name in options if known else ():
        if name not in known and not (name == 'force_default_settings' or name.startswith('_')):
            where = f'optim_wrapper.paramwise_cfg.{name} has no effect: {constructor} reads {", ".join(known)}'
            raise UserError(f'{where}; correct or remove it')
    for key, rule in options.get('custom_keys', {}).items() if constructor.startswith('LearningRateDecay') else ():
        if rule.get('lr_mult', 1) != 1:
            where = f'{CUSTOM}.{key}.lr_mult has no effect: {constructor} takes the rate from the depth of a layer'
            raise UserError(f'{where}; remove it')


def _check_match(rule: Rule, model: nn.Module) -> None:
    """A key that matches nothing must be one that a recipe has for other models."""
    if rule.names or rule.shadowed:
        return
    parts = {part for name, _ in model.named_parameters() for part in name.split('.')}
    near = difflib.get_close_matches(rule.key.strip('.').split('.')[-1], parts, n=1, cutoff=NEAR)
    if near or {*rule.options} - {'decay_mult'}:
        meant = f'did you mean {near[0]}?' if near else 'correct or remove it'
        raise UserError(f'{CUSTOM}.{rule.key} matches no parameter of the model: {meant}')


def _lost_rules(rules: list[Rule], options: dict[str, Any], model: nn.Module) -> Iterator[str]:
    """Keys that set a rate alone, and so end the general rules for norms, biases and so on."""
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
        message = f'{CUSTOM}.{key} takes {number} parameters from {name}={options[name]:g}, so that decay_mult=1 holds'
        yield f'{message} for them: give them a longer key of their own, or decay_mult={options[name]:g} to this one'


def _shadows(rules: list[Rule]) -> Iterator[str]:
    """Keys that rule nothing, and parameters that keep the full rate, because of a longer key."""
    by_key = {rule.key: rule for rule in rules}
    for rule in rules:
        if rule.shadowed and not rule.names:
            yield f'{CUSTOM}.{rule.key} has no effect: all it matches follows {", ".join(rule.shadowed)}; remove it'
        for longer, names in rule.shadowed.items():
            if 'lr_mult' in rule.options and 'lr_mult' not in by_key[longer].options:
                message = f'{len(names)} parameters that {CUSTOM}.{rule.key} matches, too, such as {names[0]}'
                yield f'{message}, follow the longer key {longer} with lr_mult=1: set lr_mult there, too'
