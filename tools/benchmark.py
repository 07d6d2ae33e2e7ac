"""Same as ``vt benchmark``."""

from vt.cli import main

if __name__ == '__main__':
    main('benchmark')
