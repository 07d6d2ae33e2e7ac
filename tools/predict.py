"""Same as ``vt predict``."""

from vt.cli import main

if __name__ == '__main__':
    main('predict')
