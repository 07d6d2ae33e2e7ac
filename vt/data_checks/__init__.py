"""Checks of the data of a config: quick ones before a run, and complete ones in ``tools/check_dataset.py``."""
