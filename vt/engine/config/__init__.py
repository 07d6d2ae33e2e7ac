"""The config of a run: its parts, the steps that complete it, the checks of its settings, its data."""
