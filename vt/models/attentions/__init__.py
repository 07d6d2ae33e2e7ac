"""Attention between tokens, including the relations of VT (paper, section 3.2)."""
