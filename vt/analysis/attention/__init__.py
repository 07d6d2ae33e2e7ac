"""Measures and figures of the attention of visual tokens."""
