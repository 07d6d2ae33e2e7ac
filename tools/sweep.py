"""Same as ``vt sweep``."""

from vt.cli import main

if __name__ == '__main__':
    main('sweep')
