"""Same as ``vt test``."""

from vt.cli import main

if __name__ == '__main__':
    main('test')
