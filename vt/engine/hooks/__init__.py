"""Hooks of runs: checkpoints, early stopping, preemption, the dry run, checks while training."""
