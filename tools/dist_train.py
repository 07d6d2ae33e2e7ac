"""Same as ``vt dist-train``."""

from vt.cli import main

if __name__ == '__main__':
    main('dist-train')
