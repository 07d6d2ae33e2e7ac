"""Tokenize and project, the two operations on pixels, as pure functions on tensors."""

from .dispatch import current_path, project, project_onto, project_onto_levels, tokenize, tokenize_levels, use_path
from .plain import project_attention, tokenize_attention

__all__ = [
    'current_path',
    'project',
    'project_attention',
    'project_onto',
    'project_onto_levels',
    'tokenize',
    'tokenize_attention',
    'tokenize_levels',
    'use_path',
]
