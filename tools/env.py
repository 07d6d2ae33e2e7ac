"""Same as ``vt env``."""

from vt.cli import main

if __name__ == '__main__':
    main('env')
