"""Embeddings of images and merging of tokens."""
