"""The commands behind the command-line tools in ``tools/``."""
