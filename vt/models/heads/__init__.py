"""Heads that MMPretrain lacks."""

from .distillation_token import DistillationTokenHead
from .dropout_linear import DropoutLinearClsHead

__all__ = ['DistillationTokenHead', 'DropoutLinearClsHead']
