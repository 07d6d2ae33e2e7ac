"""Finished runs laid beside the paper's ablations."""
