"""Checkpoints: atomic writing, reading without running code, and loading of public weights."""
