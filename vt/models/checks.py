"""Checks that the parts share: a wrong size in a config is one clear line when the model is built."""

import inspect
from typing import Any

from mmpretrain.models.losses import CrossEntropyLoss
from torch import nn

from vt.errors import UserError
from vt.registry import MODELS

from .grid import TokenPart, Unchanged


def require_divisible(part: str, name: str, value: int, divisor_name: str, divisor: int) -> None:
    """Raise ``UserError`` unless both are positive and ``divisor`` divides ``value``."""
    if value < 1 or divisor < 1:
        raise UserError(f'{part}: {name}={value} and {divisor_name}={divisor} must be at least 1')
    if value % divisor:
        raise UserError(
            f'{part}: {name}={value} is not divisible by {divisor_name}={divisor}; change one of the two in the config'
        )


def require_with(part: str, name: str, option: Any, **others: Any) -> None:
    """Raise ``UserError`` where an option is set without others, without which it has no effect."""
    for other, value in others.items():
        if option and not value:
            raise UserError(f'{part}: {name} without {other}; give {other}, or leave it out')


def require_options(part: nn.Module, method: str, options: dict[str, Any]) -> None:
    """Raise ``UserError`` for an option that no class of the part has in its ``method``."""
    owners = [vars(owner)[method] for owner in type(part).__mro__ if method in vars(owner)]
    known = {name for owner in owners for name in inspect.signature(owner).parameters}
    if unknown := options.keys() - known:
        names = ', '.join(sorted(known - {'self', 'channels', 'size', 'parts'}))
        raise UserError(f'{type(part).__name__} has no option {min(unknown)!r}; of its own it has {names}')


def build_part(config: dict, **defaults: Any) -> TokenPart:
    """The token part of a config.

    Raises:
        UserError: the class is none, so that what it asks for is not known.
    """
    part = MODELS.build(config, default_args=defaults)
    if not isinstance(part, TokenPart):
        name = type(part).__name__
        raise UserError(f'{name} is no vt.models.TokenPart: derive it from this class, which says what a part asks for')
    return part


def optional_part(config: dict | None, **defaults: Any) -> TokenPart:
    """As :func:`build_part`; without a config one that does nothing."""
    return build_part(config, **defaults) if config else Unchanged()


def require_unused_loss(owner: str, head: nn.Module) -> None:
    """The classifier has a loss of its own, so the head's may be nothing but the default, the same cross-entropy."""
    loss, plain = head.loss_module, CrossEntropyLoss()
    options = ('use_sigmoid', 'use_soft', 'loss_weight', 'class_weight', 'pos_weight')
    if type(loss) is not CrossEntropyLoss or any(getattr(loss, name) != getattr(plain, name) for name in options):
        raise UserError(
            f'{owner}: head.loss, a {type(loss).__name__}, has no effect, for the classifier has its own: '
            "set head.loss=dict(_delete_=True, type='CrossEntropyLoss')"
        )
    if head.cal_acc:
        raise UserError(f'{owner}: head.cal_acc has no effect, since labels are mixed; leave it out')
