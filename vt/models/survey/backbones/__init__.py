"""Backbones of the survey."""
