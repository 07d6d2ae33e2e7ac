"""Checkpoints: written whole or not at all, and read without running code from them."""
