"""Checks of options, shared by the parts: user errors are raised when the model is built."""

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
    """Raise ``UserError`` if an option is set while one of ``others``, which it needs to have an effect, is not."""
    for other, value in others.items():
        if option and not value:
            raise UserError(f'{part}: {name} without {other} has no effect; set {other}, or remove {name}')


def require_options(part: nn.Module, method: str, options: dict[str, Any]) -> None:
    """Raise ``UserError`` for an option that ``method`` accepts in no class of the part."""
    owners = [vars(owner)[method] for owner in type(part).__mro__ if method in vars(owner)]
    known = {name for owner in owners for name in inspect.signature(owner).parameters}
    if unknown := options.keys() - known:
        names = ', '.join(sorted(known - {'self', 'channels', 'size', 'parts'}))
        raise UserError(f'{type(part).__name__} has no option {min(unknown)!r}; its own options are {names}')


def build_part(config: dict, **defaults: Any) -> TokenPart:
    """Build the token part of a config; ``defaults`` are the options that the config does not set.

    Raises:
        UserError: the class is not derived from :class:`vt.models.TokenPart`.
    """
    part = MODELS.build(config, default_args=defaults)
    if not isinstance(part, TokenPart):
        name = type(part).__name__
        raise UserError(f'{name} is not a vt.models.TokenPart, which declares what a part needs; derive {name} from it')
    return part


def optional_part(config: dict | None, **defaults: Any) -> TokenPart:
    """As :func:`build_part`; return an identity part if ``config`` is None."""
    return build_part(config, **defaults) if config else Unchanged()


def require_unused_loss(owner: str, head: nn.Module) -> None:
    """Raise ``UserError`` if the head sets a loss or an accuracy, which a classifier with its own loss never uses."""
    loss, plain = head.loss_module, CrossEntropyLoss()
    options = ('use_sigmoid', 'use_soft', 'loss_weight', 'class_weight', 'pos_weight')
    if type(loss) is not CrossEntropyLoss or any(getattr(loss, name) != getattr(plain, name) for name in options):
        raise UserError(
            f'{owner}: head.loss, a {type(loss).__name__}, has no effect, because the classifier has its own loss: '
            "set head.loss=dict(_delete_=True, type='CrossEntropyLoss')"
        )
    if head.cal_acc:
        raise UserError(f'{owner}: head.cal_acc has no effect, because labels are mixed; remove it')
