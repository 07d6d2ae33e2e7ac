"""Same as ``vt probe``."""

from vt.cli import main

if __name__ == '__main__':
    main('probe')
