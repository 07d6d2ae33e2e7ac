"""Classifiers with losses that MMPretrain does not have."""

from .distilled import DistilledClassifier
from .token_label import TokenLabelClassifier

__all__ = ['DistilledClassifier', 'TokenLabelClassifier']
