"""Feed-forward parts: what each token makes of itself."""

from .mlp import FeedForward

__all__ = ['FeedForward']
