"""Check ``optim_wrapper.paramwise_cfg``: which parameters each rule applies to.

mmengine applies to each parameter the longest of the ``custom_keys`` that its name contains. The rules for norms,
biases and depth-wise convolutions apply only to parameters without such a key. A factor that the key does not set is
then 1.
"""

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

from torch import nn

from vt.errors import UserError

from .config_files import own_words

CUSTOM = 'optim_wrapper.paramwise_cfg.custom_keys'
DECAYING = 'LearningRateDecayOptimWrapperConstructor'
# Options of paramwise_cfg that each optimizer constructor reads; other constructors are not checked.
READ = {
    'DefaultOptimWrapperConstructor': (
        *('bias_decay_mult', 'bias_lr_mult', 'bypass_duplicate', 'custom_keys', 'dcn_offset_lr_mult'),
        *('dwconv_decay_mult', 'flat_decay_mult', 'norm_decay_mult'),
    ),
    DECAYING: ('bias_decay_mult', 'custom_keys', 'flat_decay_mult', 'layer_decay_rate', 'norm_decay_mult'),
    'LayerDecayOptimizerConstructor': ('decay_rate', 'decay_type', 'num_layers'),
}
NEAR = 0.8  # similarity of two names, at most 1, above which one may be a misspelling of the other


def check_parameter_rules(model: nn.Module, optim_wrapper: dict, config: str | None = None) -> list[str]:
    """Compare ``paramwise_cfg`` with a model.

    A key may match nothing if it only sets the weight decay, or if the config inherits it: recipes have keys for other
    models.

    Args:
        model: the model to train.
        optim_wrapper: config of the optimizer wrapper.
        config: path of the config; without it all keys are its own.

    Returns:
        A line per custom key with the number of parameters and its factors.

    Raises:
        UserError: the constructor does not read a setting; or a key matches no parameter and changes the learning rate
            or is similar to a name in the model.
    """
    options = optim_wrapper.get('paramwise_cfg') or {}
    constructor = _constructor_of(optim_wrapper)
    known = READ.get(constructor, options)
    for name in options:
        if name not in known and not (name == 'force_default_settings' or name.startswith('_')):
            where = f'optim_wrapper.paramwise_cfg.{name} has no effect: {constructor} reads {", ".join(known)}'
            raise UserError(f'{where}; correct or remove it')
    keys, lines = options.get('custom_keys', {}) if constructor in READ else {}, []
    own = own_words(config, keys) if config else keys
    for key, names in match_parameters(model, keys).items():
        rule = keys[key]
        if constructor == DECAYING and rule.get('lr_mult', 1) != 1:
            where = f'{CUSTOM}.{key}.lr_mult has no effect: {constructor} sets the rate by the depth of a layer'
            raise UserError(f'{where}; remove it')
        if key in own and not any(key in name for name in _names(model)):
            parts = {part for name in _names(model) for part in name.split('.')}
            near = difflib.get_close_matches(key.strip('.').split('.')[-1], parts, n=1, cutoff=NEAR)
            if near or {*rule} - {'decay_mult'}:
                meant = f'did you mean {near[0]}?' if near else 'correct or remove it'
                raise UserError(f'{CUSTOM}.{key} matches no parameter of the model: {meant}')
        factors = ', '.join(f'{name} {rule.get(name, 1.0):g}' for name in ('lr_mult', 'decay_mult'))
        lines.append(f'paramwise_cfg: {key} applies to {len(names):,} parameters, {factors}')
    return lines


def require_multiplied(optim_wrapper: dict) -> None:
    """Check that the optimizer has the settings that ``paramwise_cfg`` multiplies: without them it has own defaults.

    Raises:
        UserError: a factor has no learning rate or no weight decay to multiply.
    """
    options, optimizer = optim_wrapper.get('paramwise_cfg') or {}, optim_wrapper.get('optimizer') or {}
    rules = (options.get('custom_keys') or {}).values() if _constructor_of(optim_wrapper) in READ else ()
    factors = [*options, *(name for rule in rules for name in ('lr_mult', *rule))]  # lr_mult is 1 without it
    for setting, ends in dict(weight_decay='decay_mult', lr=('lr_mult', 'decay_rate')).items():
        factor = next((name for name in factors if name.endswith(ends)), None)
        if factor and optimizer.get(setting) is None:
            words = f'optim_wrapper.paramwise_cfg: {factor} has no {setting} to multiply'
            raise UserError(f'{words}: set optim_wrapper.optimizer.{setting}')


def _constructor_of(optim_wrapper: dict) -> str:
    return str(optim_wrapper.get('constructor', 'DefaultOptimWrapperConstructor')).split('.')[-1]


def match_parameters(model: nn.Module, custom_keys: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of the parameters that each custom key applies to."""
    found: dict[str, list[str]] = {key: [] for key in custom_keys}
    for name in _names(model):
        if matching := [key for key in sorted(found) if key in name]:
            found[max(matching, key=len)].append(name.removeprefix('.'))
    return found


def _names(model: nn.Module) -> list[str]:
    """Return the names of parameters as mmengine compares them: those of the model itself begin with a dot."""
    return [name if '.' in name else f'.{name}' for name, _ in model.named_parameters()]


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
