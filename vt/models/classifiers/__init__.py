"""Classifiers that MMPretrain lacks."""

from .distilled import DistilledClassifier

__all__ = ['DistilledClassifier']
