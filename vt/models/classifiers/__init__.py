"""Classifiers that MMPretrain lacks."""

from .distilled import DistilledClassifier
from .token_label import TokenLabelClassifier

__all__ = ['DistilledClassifier', 'TokenLabelClassifier']
