"""Checks before and during a run: settings, classes, losses."""
