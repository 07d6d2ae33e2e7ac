"""Embeddings: tokens from an image, a video or a map. VT's tokenizers are in :mod:`vt.models.tokenizers`."""
