"""Configs with something wrong in them."""

import copy
import functools

from hypothesis import strategies as st
from tool_runner import ROOT

from vt.engine.prepare import read_config

CONFIGS = ['configs/vt_resnet/vt-resnet18-half_digits.py', 'configs/vt_fpn/vt-fpn_r18_digit-scenes.py']

junk_values = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1000, -1, 0, 1, 2, 3, 5, 64, 2**31, 2**63, 10**30]),
    st.sampled_from([-1.0, 0.0, 0.5, 2.5, 1e-30, 1e30, float('nan'), float('inf')]),
    st.sampled_from(['', 'junk', '3', 'vt.Junk', 'Linear', 'ReLU', '/nowhere/at all', 'a\0b', 'é\n', 'x' * 1000]),
    st.text(max_size=5),
    st.sampled_from([b'', {1, 2}, range(3), object, print, 1j]),
)
junk = st.recursive(
    junk_values,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(['type', 'depth', 'a', 'in_channels', 'size']), inner, max_size=2),
        st.tuples(inner, inner),
    ),
    max_leaves=4,
)


@functools.cache
def base_config(name):
    return read_config(str(ROOT / name)).to_dict()


@functools.cache
def paths(name):
    """Of every setting and every part of a config."""

    def below(value, path):
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in items:
            yield (*path, key)
            yield from below(inner, (*path, key))

    return list(below(base_config(name), ()))


@st.composite
def changes(draw, name):
    """One or two changes: ``(path, what, value)``."""
    drawn = []
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(paths(name)))
        what = draw(st.sampled_from(['set', 'set', 'set', 'copy', 'delete', 'rename', 'add']))
        drawn.append((path, what, draw(st.sampled_from(paths(name)) if what == 'copy' else junk)))
    return drawn


def find(part, path):
    for key in path:
        part = part[key]
    return part


def changed_config(name, drawn):
    """A config with changes; a change whose place another one has taken away is left out."""
    config = copy.deepcopy(base_config(name))
    for path, what, value in drawn:
        try:
            part = find(config, path[:-1])
            old = part[path[-1]]
            if what == 'set':
                part[path[-1]] = value
            elif what == 'copy':
                part[path[-1]] = copy.deepcopy(find(base_config(name), value))
            elif what == 'delete':
                del part[path[-1]]
            elif what == 'rename' and isinstance(part, dict):
                part[f'{path[-1]}s'] = part.pop(path[-1])
            elif what == 'rename' and isinstance(old, str):
                part[path[-1]] = old[::-1]
            elif what == 'add' and isinstance(old, dict):
                old['junk'] = value
        except (KeyError, IndexError, TypeError, AttributeError):
            continue
    return config
