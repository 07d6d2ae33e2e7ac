"""Same as ``vt check-dataset``."""

from vt.cli import main

if __name__ == '__main__':
    main('check-dataset')
