"""Tokenizers: a few visual tokens from the pixels of a feature map (paper, section 3.1)."""
