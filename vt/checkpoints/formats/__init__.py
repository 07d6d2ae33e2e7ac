"""The names in public files of weights: a table for each format and family, and how one is recognised."""
