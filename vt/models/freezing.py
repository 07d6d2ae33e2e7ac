"""Freeze parts of a model: their parameters are not trained, and their layers stay in evaluation mode."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from vt.errors import UserError


def freeze(model: nn.Module, names: str | Sequence[str]) -> None:
    """Freeze parts of a model in place, before it is wrapped for several processes.

    Args:
        model: the model.
        names: names of its submodules, such as ``'backbone'`` or ``'backbone.layer1'``.

    Raises:
        UserError: there is no such part, or nothing is left to train.
    """
    parts = dict(model.named_modules())
    for name in [names] if isinstance(names, str) else names:
        if name not in parts or not name:
            known = ', '.join(child for child, part in model.named_children() if [*part.parameters()])
            raise UserError(f'freeze={name}: the model has no such part; it has {known}, and parts of these')
        parts[name].requires_grad_(False).register_forward_pre_hook(_evaluate)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UserError(f'freeze={names}: nothing is left to train')


def _evaluate(part: nn.Module, args: Any) -> None:
    if part.training:  # the training loop sets the mode of the whole model
        part.eval()
