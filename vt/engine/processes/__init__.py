"""Runs of several processes: how they start, what they share, how they fail."""
