"""Necks of the survey."""
