"""Command of ``vt print-config``: the config of a run, and the steps that it goes through."""

import argparse
import copy
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from vt.engine.config.check_settings import shortened
from vt.engine.config.steps import RunOptions, prepare_in_steps

SHOWN = 60  # characters of a value
ABSENT = object()


def print_config(args: argparse.Namespace) -> None:
    """Print a config as Python, then, as comments, what each step set; it is checked as before a run."""
    steps = []
    for name, run in prepare_in_steps(args.config, RunOptions.of(args, shows=True)):
        steps.append((name, copy.deepcopy(run.cfg.to_dict())))
    print(run.cfg.pretty_text)
    print(f'# What was set after {steps[0][0]} was read:')
    for (_, before), (name, after) in pairwise(steps):
        for line in compare(before, after):
            print(f'# {name}: {line}')


def compare(before: Any, after: Any, path: str = '') -> Iterator[str]:
    """Yield a line for each setting that differs; a part that is replaced is one setting."""
    both = (before, after)
    if all(isinstance(value, dict) for value in both) and (
        before.keys() <= after.keys() or after.keys() <= before.keys()
    ):
        for key in sorted({*before, *after}):
            yield from compare(before.get(key, ABSENT), after.get(key, ABSENT), f'{path}.{key}'.strip('.'))
    elif all(isinstance(value, (list, tuple)) for value in both) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after)):
            yield from compare(old, new, f'{path}.{index}')
    elif after is ABSENT:
        yield f'{path} is removed'
    elif before is ABSENT or before != after:
        was = '' if before is ABSENT else f' instead of {shortened(before, SHOWN)}'
        yield f'{path} = {shortened(after, SHOWN)}{was}'
