"""Attentions of the survey."""
