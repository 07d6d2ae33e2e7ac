"""What writes this repository's own pages: ``python -m docs.reports``, run in its root."""
