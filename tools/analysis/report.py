"""Same as ``vt report``."""

from vt.cli import main

if __name__ == '__main__':
    main('report')
