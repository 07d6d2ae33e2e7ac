"""Checkpoints: written whole or not at all, read without running code from them.

Importing it makes mmengine write and read them so, for the whole process.
"""

from .files import install_backend
from .loading import install_loaders

install_backend()
install_loaders()
