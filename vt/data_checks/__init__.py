"""Checks of the data of a config: quick ones before a run, and complete ones in ``vt check-dataset``."""
