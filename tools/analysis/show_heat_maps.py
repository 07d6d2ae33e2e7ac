"""Same as ``vt show-heat-maps``."""

from vt.cli import main

if __name__ == '__main__':
    main('show-heat-maps')
