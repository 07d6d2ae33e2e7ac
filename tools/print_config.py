"""Same as ``vt print-config``."""

from vt.cli import main

if __name__ == '__main__':
    main('print-config')
