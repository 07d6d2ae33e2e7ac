"""Feed-forward networks of transformer blocks."""

from .mlp import FeedForward, SqueezeExcite

__all__ = ['FeedForward', 'SqueezeExcite']
