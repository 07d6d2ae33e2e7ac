"""Same as ``vt train``."""

from vt.cli import main

if __name__ == '__main__':
    main('train')
