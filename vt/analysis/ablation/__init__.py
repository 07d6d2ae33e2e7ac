"""Scores of finished runs as tables, compared with each other."""
