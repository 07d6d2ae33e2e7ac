"""Classification heads that MMPretrain does not have."""

from .distillation_token import DistillationTokenHead
from .dropout_linear import DropoutLinearClsHead
from .token_label import TokenLabelHead

__all__ = ['DistillationTokenHead', 'DropoutLinearClsHead', 'TokenLabelHead']
