"""An error is one line: what, where, and what to do."""
