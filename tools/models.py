"""Same as ``vt models``."""

from vt.cli import main

if __name__ == '__main__':
    main('models')
