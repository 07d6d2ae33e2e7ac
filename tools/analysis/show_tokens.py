"""Same as ``vt show-tokens``."""

from vt.cli import main

if __name__ == '__main__':
    main('show-tokens')
