"""``python -m vt COMMAND ...``, from any folder and without a checkout."""

from vt.cli import main

if __name__ == '__main__':
    main()
