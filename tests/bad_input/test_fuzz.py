"""The walk over a config meets random mistakes, and either accepts what it is given or refuses it in one line.

With ``VT_FUZZ_EXAMPLES=100000`` in the environment it tries so many new examples.
"""

import copy
import functools
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mmengine.config import Config
from tool_runner import ROOT

from vt.engine.config.check_settings import check_config
from vt.engine.config.steps import read_config
from vt.engine.reporting import describe

EXAMPLES = int(os.environ.get('VT_FUZZ_EXAMPLES', 0))
CONFIGS = ['configs/vt_resnet/vt-resnet18-half_digits.py', 'configs/vt_fpn/vt-fpn_r18_digit-scenes.py']
VALUES = [None, True, False, -1000, -1, 0, 1, 2, 3, 5, 64, 2**31, 2**63, 10**30, b'', {1, 2}, range(3), object, print]
VALUES += [-1.0, 0.0, 0.5, 1e-30, 1e30, float('nan'), float('inf'), 1j, '', 'junk', '3', 'vt.Junk', 'Linear', 'ReLU']
VALUES += ['/nowhere/at all', 'a\0b', 'é\n', 'x' * 1000]
KEYS = st.sampled_from(['type', 'depth', 'a', 'in_channels', 'size'])
junk = st.recursive(
    st.sampled_from(VALUES) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=2) | st.tuples(inner, inner),
    max_leaves=4,
)


@functools.cache
def base_config(name):
    return read_config(str(ROOT / name)).to_dict()


def paths(value, path=()):
    """Of every setting and every part of a config."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from paths(inner, (*path, key))


def find(part, path):
    return functools.reduce(lambda inner, key: inner[key], path, part)


def change(config, path, what, value):
    part = find(config, path[:-1])
    old = part[path[-1]]
    if what == 'delete':
        del part[path[-1]]
    elif what == 'rename' and isinstance(part, dict):
        part[f'{path[-1]}s'] = part.pop(path[-1])
    elif what == 'add' and isinstance(old, dict):
        old['junk'] = value
    elif what == 'set':
        part[path[-1]] = value


@pytest.mark.parametrize('name', CONFIGS)
def test_configs_with_mistakes(name):
    places = st.sampled_from([*paths(base_config(name))])
    copied = places.map(lambda path: copy.deepcopy(find(base_config(name), path)))
    kinds = st.sampled_from(['set', 'set', 'delete', 'rename', 'add'])
    check_config(Config(copy.deepcopy(base_config(name))))

    @settings(max_examples=EXAMPLES or 50, derandomize=not EXAMPLES)
    @given(st.lists(st.tuples(places, kinds, junk | copied), min_size=1, max_size=2))
    def check_some(changes):
        config = copy.deepcopy(base_config(name))
        for path, what, value in changes:
            try:
                change(config, path, what, value)
            except (KeyError, IndexError, TypeError):  # another change has taken the place away
                continue
        try:
            check_config(Config(config))
        except Exception as error:
            line = describe(error)
            if line is None:  # an error that is not meant for a person
                raise
            assert len(line.splitlines()) == 1, repr(line)

    check_some()
