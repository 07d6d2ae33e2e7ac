"""Checks before a run and while it goes on: settings, data, classes, losses."""
