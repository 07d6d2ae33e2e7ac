"""Same as ``vt publish``."""

from vt.cli import main

if __name__ == '__main__':
    main('publish')
