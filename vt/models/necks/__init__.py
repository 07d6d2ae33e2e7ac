"""Necks: the token average of the classifiers."""

from .token_average import TokenAverage

__all__ = ['TokenAverage']
