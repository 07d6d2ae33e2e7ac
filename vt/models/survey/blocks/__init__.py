"""Transformer blocks of the survey and their parts."""
