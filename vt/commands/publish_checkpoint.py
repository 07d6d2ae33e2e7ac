"""Published checkpoints, as ``tools/publish.py`` asks."""

import argparse
from pathlib import Path

from vt.checkpoints.publish import publish, read_metadata


def publish_or_show(args: argparse.Namespace) -> None:
    """Write a published checkpoint, or print what one says of itself.

    Raises:
        ValueError: not exactly one of the two is asked for.
    """
    if args.show:
        if args.checkpoint:
            raise ValueError('--show FILE takes no other file')
        show(args.show)
    elif args.out:
        print(f'written to {publish(args.checkpoint, args.out, args.config, args.metrics)}')
    else:
        raise ValueError('give CHECKPOINT and OUT, or --show FILE')


def show(path: Path) -> None:
    """Print a published checkpoint's metadata, the config last; nothing of it is run."""
    metadata = read_metadata(path)
    for name in sorted(metadata, key=lambda name: (name == 'config', name)):
        separator = '\n' if '\n' in metadata[name] else ' '
        print(_printable(f'{name}:{separator}{metadata[name]}'))


def _printable(text: str) -> str:
    """Text of a stranger, without what a terminal would obey."""
    return ''.join(letter if letter.isprintable() or letter in '\n\t' else '?' for letter in text)
