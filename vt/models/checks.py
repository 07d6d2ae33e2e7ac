"""Building parts, and checks of their options: user errors are raised when the model is built."""

import copy
import math
from typing import Any

import torch
from mmcv.cnn import build_norm_layer
from mmpretrain.models.losses import CrossEntropyLoss
from torch import nn

from vt.errors import UserError
from vt.registry import MODELS

from .grid import Identity, Size, TokenPart


def require_divisible(part: str, name: str, value: int, divisor_name: str, divisor: int) -> None:
    """Raise ``UserError`` unless ``divisor`` is positive and divides ``value``."""
    if divisor < 1 or value % divisor:
        raise UserError(
            f'{part}: {name}={value} is not divisible by {divisor_name}={divisor}; change one of them in the config'
        )


def require_positive(part: nn.Module, **numbers: int) -> None:
    """Raise ``UserError`` unless all options are at least 1."""
    for name, number in numbers.items():
        if number < 1:
            raise UserError(f'{type(part).__name__}: {name}={number} must be at least 1')


def require_with(part: str, name: str, option: Any, **others: Any) -> None:
    """Raise ``UserError`` if an option is set while one of ``others``, which it needs to have an effect, is not."""
    for other, value in others.items():
        if option and not value:
            raise UserError(f'{part}: {name} without {other} has no effect; set {other}, or remove {name}')


def build_part(config: dict, **defaults: Any) -> TokenPart:
    """Build the token part of a config; ``defaults`` are the options that the config does not set.

    Raises:
        UserError: the class is not derived from :class:`vt.models.TokenPart`.
    """
    part = MODELS.build(config, default_args=defaults)
    if not isinstance(part, TokenPart):
        name = type(part).__name__
        raise UserError(f'{name} must be a subclass of vt.models.TokenPart')
    return part


def optional_part(config: dict | None, **defaults: Any) -> TokenPart:
    """As :func:`build_part`; return an identity part if ``config`` is None."""
    return build_part(config, **defaults) if config else Identity()


def optional_norm(config: dict | None, channels: int) -> nn.Module:
    """Build a normalisation; return an identity if ``config`` is None."""
    return build_norm_layer(config, channels)[1] if config else nn.Identity()


def check_shape(part: nn.Module, needed: str, expected: Size, *given: Size | tuple[Size]) -> None:
    """Check that a user's own part returns tensors of the shape that its owner needs; nothing is computed.

    A part that can't be called without data is left to the first forward pass.

    Args:
        part: of a user's own; VT's are not called.
        needed: the shape in letters.
        expected: the shape.
        given: what the part is called with: the shape of a tensor, or a tuple of a size that is handed on.

    Raises:
        UserError: it gives another shape.
    """
    if type(part).__module__.startswith('vt.'):
        return
    try:
        skeleton = copy.deepcopy(part).to('meta').eval()
        inputs = [one[0] if isinstance(one[0], tuple) else torch.empty(one, device='meta') for one in given]
        with torch.no_grad():
            found = tuple(skeleton(*inputs).shape)
    except UserError:
        raise
    except Exception:  # whatever an operation without data raises
        return
    if found != expected:
        name = type(part).__name__
        raise UserError(f'{name} returns shape {found} for input {given[0]}: it must be {needed}, here {expected}')


def check_tokens(part: TokenPart, channels: int, size: Size, num_class_tokens: int | None = None) -> None:
    """As :func:`check_shape`, of a part that is called with tokens and the size of their grid."""
    classes = num_class_tokens or int(part.updates_class_tokens_alone)
    given = (2, classes + math.prod(size), channels)
    if part.updates_class_tokens_alone:
        check_shape(part, 'that of the class tokens, (N, K, C)', (2, classes, channels), given, (size,))
    else:
        check_shape(part, 'that of the input, (N, K + P, C)', given, given, (size,))


def require_unused_loss(owner: str, head: nn.Module) -> None:
    """Raise ``UserError`` if the head sets a loss or an accuracy, which a classifier with its own loss never uses."""
    loss, plain = head.loss_module, CrossEntropyLoss()
    options = ('use_sigmoid', 'use_soft', 'loss_weight', 'class_weight', 'pos_weight')
    if type(loss) is not CrossEntropyLoss or any(getattr(loss, name) != getattr(plain, name) for name in options):
        raise UserError(
            f'{owner}: head.loss={type(loss).__name__} has no effect, because the classifier has its own loss: '
            "set head.loss=dict(_delete_=True, type='CrossEntropyLoss')"
        )
    if head.cal_acc:
        raise UserError(f'{owner}: head.cal_acc has no effect, because labels are mixed; remove it')
