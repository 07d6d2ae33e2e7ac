"""What makes the figures of this repository's pages: ``python -m docs.figures``, run in its root."""
