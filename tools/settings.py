"""Same as ``vt settings``."""

from vt.cli import main

if __name__ == '__main__':
    main('settings')
