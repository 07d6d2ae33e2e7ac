"""Heads that MMPretrain lacks."""

from .dropout_linear import DropoutLinearClsHead

__all__ = ['DropoutLinearClsHead']
