"""The command line: ``vt COMMAND ...``, ``python -m vt COMMAND ...``, and the scripts in ``tools/``."""

from .main import main

__all__ = ['main']
