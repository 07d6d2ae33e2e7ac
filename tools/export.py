"""Same as ``vt export``."""

from vt.cli import main

if __name__ == '__main__':
    main('export')
