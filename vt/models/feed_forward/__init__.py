"""Feed-forward parts: what each token makes of itself."""

from .mlp import FeedForward
from .squeeze import SqueezeExcite

__all__ = ['FeedForward', 'SqueezeExcite']
