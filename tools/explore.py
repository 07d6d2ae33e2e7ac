"""Same as ``vt explore``."""

from vt.cli import main

if __name__ == '__main__':
    main('explore')
