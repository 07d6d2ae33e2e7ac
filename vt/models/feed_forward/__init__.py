"""Feed-forward parts: what each token makes of itself."""

from .mlp import FeedForward, SqueezeExcite

__all__ = ['FeedForward', 'SqueezeExcite']
