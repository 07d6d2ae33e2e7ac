"""Classifiers with losses that MMPretrain does not have."""
