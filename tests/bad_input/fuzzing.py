"""Configs with something wrong in them, and what an error must say."""

import copy
import functools
import logging
import resource
import signal
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from hypothesis import strategies as st
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.logging import MessageHub, MMLogger
from mmengine.registry import DefaultScope
from mmengine.visualization import Visualizer
from tool_runner import ROOT

from vt.engine.checks.config_check import check_config
from vt.engine.checks.data_check import check_data
from vt.engine.command_line import enter_options, read_config, set_loader_defaults
from vt.engine.errors.messages import describe
from vt.engine.errors.place import find_place
from vt.engine.launch import build_runner

GIGABYTE = 2**30
SECONDS = 30  # that an example may take before it counts as hanging; most take a quarter of one
FREE = 3 * GIGABYTE  # that an example may allocate
SMALL_RESNET = {'model.backbone.stem_channels': 8, 'model.backbone.base_channels': 8}
# Configs, and what makes them small.
CONFIGS = {
    'configs/vt_resnet/vt-resnet18-half_digits.py': {
        **SMALL_RESNET,
        'model.backbone.num_tokens': 4,
        'model.backbone.token_channels': 16,
        'model.backbone.relation': dict(num_heads=2, scale_logits=True),
        'model.head.in_channels': 16,
        'train_dataloader.batch_size': 4,
        'train_dataloader.dataset.indices': 8,
        'val_dataloader.dataset.indices': 4,
        'test_dataloader.dataset.indices': 4,
    },
    'configs/vt_fpn/vt-fpn_r18_digit-scenes.py': {
        **SMALL_RESNET,
        'model.neck.in_channels': [8, 16, 32, 64],
        'model.neck.out_channels': 8,
        'model.neck.token_channels': 16,
        'model.neck.num_tokens': 4,
        'model.decode_head.in_channels': [8] * 4,
        'model.decode_head.channels': 8,
        'train_dataloader.batch_size': 2,
        'train_dataloader.dataset.num_scenes': 4,
        'val_dataloader.dataset.num_scenes': 2,
        'val_dataloader.dataset.indices': 2,
        'val_dataloader.batch_size': 2,
    },
}
# Parts that no run of one iteration reads, or that only the environment can judge.
LEFT_OUT = ('test_dataloader', 'test_evaluator', 'test_cfg', 'custom_imports', 'env_cfg', 'vis_backends')
HUGE = 2**31, 2**63, 10**30  # no machine allocates them; what lies between would only take long
COUNTS_OF_WORK = ('num_workers', 'num_scenes', 'num_images', 'times', 'resource_limit', 'prefetch_factor')

junk_values = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1000, -1, 0, 1, 2, 3, 5, 64, *HUGE]),
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
    cfg = read_config(str(ROOT / name))
    cfg.merge_from_dict(CONFIGS[name])
    return {key: value for key, value in cfg.to_dict().items() if not key.endswith('_pipeline')}


@functools.cache
def paths(name):
    """Of every setting and every part of a config."""

    def below(value, path):
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in items:
            yield (*path, key)
            yield from below(inner, (*path, key))

    return [path for path in below(base_config(name), ()) if path[0] not in LEFT_OUT]


@st.composite
def changes(draw, name):
    """One or two changes: ``(path, what, value)``."""
    drawn = []
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(paths(name)))
        what = draw(st.sampled_from(['set', 'set', 'set', 'copy', 'delete', 'rename', 'add', 'option']))
        value = draw(st.sampled_from(paths(name)) if what == 'copy' else junk)
        if path[-1] in COUNTS_OF_WORK and (what == 'copy' or (isinstance(value, int) and value > 3)):
            what, value = 'set', 2
        drawn.append((path, what, value))
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


class Enough(BaseException):
    """One iteration of training is done."""


class Hanging(BaseException):
    """An example takes too long."""


class StopHook(Hook):
    priority = 'LOWEST'

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        raise Enough


@contextmanager
def limits():
    """Nothing may hang or take the machine's memory; what runs are known by name is forgotten at the end."""

    def stop(number, frame):
        raise Hanging

    used = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, stop)
    resource.setrlimit(resource.RLIMIT_AS, (used + FREE, hard))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        _forget()


def _forget():
    for logger in MMLogger._instance_dict.values():
        for handler in logger.handlers:
            if isinstance(handler, logging.FileHandler):
                handler.close()
    for kind in (MMLogger, MessageHub, Visualizer, DefaultScope):
        kind._instance_dict.clear()
    torch.set_default_dtype(torch.float32)


def options(drawn):
    """What is given as ``--cfg-options``, half of it with a misspelt key."""
    chosen = [('.'.join(map(str, path)), value) for path, what, value in drawn if what == 'option']
    return {f'{path}_' if isinstance(value, str) else path: value for path, value in chosen}


def run(config, work_dir, options):
    """Do what ``tools/train.py`` does, for one iteration and one validation; the error, or None."""
    try:
        cfg = Config(config, format_python_code=False)
        enter_options(cfg, options)
        cfg.launcher, cfg.work_dir = 'none', str(work_dir)
        check_config(cfg)
        set_loader_defaults(cfg)
        check_data(cfg, ('train', 'val'))
        runner = build_runner(cfg)
        runner.register_hook(StopHook())
        with suppress(Enough):
            runner.train()
        if runner._val_dataloader is not None:
            runner.val()
    except Exception as error:
        return error
    return None


def complaint(error, drawn):
    """Why an error counts as unhandled; None for a good line.

    A good line names a changed setting, by a key of its path or by its value. Where something else does not fit any
    more, it names that part of the config in words that were written for people: those of a ``ValueError`` or a
    ``RuntimeError``, not of an ``AttributeError`` or a bare ``assert``.
    """
    line = describe(error)
    if '\n' in line or not line.strip():
        return f'not one line: {line!r}'
    if isinstance(error, RecursionError):
        return f'endless recursion: {line}'
    keys = {str(key) for path, *_ in drawn for key in path if isinstance(key, str)}
    if any(key in line for key in keys) or any(repr(value)[:20] in line for _, _, value in drawn):
        return None
    place = find_place(error)
    for_people = isinstance(error, (ValueError, RuntimeError)) or 'there is no' in line
    return None if place is not None and place.path in line and for_people else f'names no setting: {line}'
