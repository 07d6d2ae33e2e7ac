"""Tokenize and project, the two operations on pixels, as pure functions on tensors."""

from .dispatch import current_path, project, project_onto, tokenize, use_path
from .plain import project_attention, tokenize_attention

__all__ = [
    'current_path',
    'project',
    'project_attention',
    'project_onto',
    'tokenize',
    'tokenize_attention',
    'use_path',
]
