"""Read changed folders of a saved model in this process, and tell of all that happens beyond what a harmless one does.

    fuzzing_folders.py FOLDER SEED EXAMPLES SECONDS

At most so many examples are tried in so many seconds. A line of JSON tells how many there were, how many were refused,
and what happened that must not.
"""

import copy
import json
import os
import random
import shutil
import sys
import time
import warnings
from pathlib import Path

from mmengine.config import Config

from vt import apis
from vt._libraries import import_library
from vt.apis import folders
from vt.apis.folders import is_listed
from vt.engine.checks.config import accepted_arguments, check_config, find_types, registries
from vt.errors import UserError
from vt.registry import import_every_part

MARK = 'ran.txt'
CODE = f"__import__('os').system('touch {MARK}')"
# What the interpreter tells of that code of a folder could bring about; the first word of an event's name.
WATCHED = ('import', 'exec', 'compile', 'open', 'os', 'subprocess', 'socket', 'urllib', 'pickle', 'marshal', 'ctypes')
WATCHED += ('shutil', 'tempfile', 'glob', 'ftplib', 'http', 'webbrowser', 'sqlite3', 'mmap', 'pty', 'builtins')
QUIET = ('os.listdir', 'os.scandir', 'builtins.id')
TEXTS = [
    *(CODE, f'{CODE} #', 'os.system', 'os.abort', 'antigravity', 'trap_module', 'trap_module.run', 'builtins.eval'),
    *('torch.hub.load', 'torch.load', 'numpy.load', 'vt.apis.get_model', 'mmengine.load', 'subprocess.check_output'),
    *('trap.pkl', './trap.pkl', '../trap.pkl', '/etc/passwd', '~/trap.pkl', 'file:///etc/passwd', 'trap.pth'),
    *('http://127.0.0.1:9/trap.pth', 'https://127.0.0.1:9/x', 's3://trap/x', 'petrel://x', 'hf-hub:me/trap'),
    *('torchvision://resnet50', 'open-mmlab://resnet50', 'mmcls://resnet50', 'modelzoo://resnet18', 'pavi://trap'),
    *('resnet18', 'vit_base_patch16_224', 'google/vit-base-patch16-224', '{{fileDirname}}', '{{$HOME:x}}', '$HOME'),
    *('\x1b[2J', 'a\0b', 'x' * 100_000, '', ' ', 'é', '\ud800', '__class__', '__init__.__globals__', 'forward', '%n%s'),
    *('eval', 'type', 'train', 'whole', 'BN', 'ReLU', 'Conv2d', 'bilinear', 'tiny', 'base', 'float32', 'torch.float32'),
]
NUMBERS = [None, True, False, -1, 0, 1, 2, 3, 7, 64, 10**6, 2**31, 2**63, 10**400, -1.5, 0.0, 0.5, 1e30, float('nan')]
NUMBERS += [float('inf'), [], {}, [1], [1, 2], [[1, 2], [3, 4]], {'tuple': [1, 2]}, {'tuple': 3}, {'a': {'b': 1}}]
PARTS = [
    dict(type='Pretrained', checkpoint='trap.pth'),
    dict(type='torchvision/ConvertImageDtype', dtype=CODE),
    dict(type='LoadImageFromFile', backend_args=dict(backend='memcached', server_list_cfg='a', sys_path='.')),
    dict(type='LoadImageFromFile', imdecode_backend='memcached'),
    dict(type='BaseDataset', ann_file='trap.pkl'),
    dict(type='TIMMBackbone', model_name='resnet18', pretrained=True, checkpoint_path='trap.pth'),
    dict(type='HuggingFaceClassifier', model_name='me/trap', pretrained=True),
    dict(type='CrossEntropyLoss', class_weight='trap.pkl'),
    dict(type='ArcFaceClsHead', num_classes=10, in_channels=64, margins='trap.txt'),
    dict(type='CLIPGenerator', tokenizer_path='trap.pth'),
    dict(type='mmpretrain.ImageClassifier', backbone=dict(type='ResNet', depth=18, pretrained='trap.pth')),
    dict(type='ConvModule', in_channels=1, out_channels=1, kernel_size=1, conv_cfg=dict(type='os.system')),
    dict(type=dict(type='ReLU')),
    dict(type='ReLU', _scope_='os'),
    dict(type='LN', normalized_shape=[10**6, 10**6]),
    dict(_base_='trap.py', _delete_=True),
]
KEYS = ('type', '_scope_', '_delete_', '_base_', 'init_cfg', 'pretrained', 'checkpoint', 'backend_args', 'train_cfg')


def places(value, path=()):
    """The paths of everything in a description, and of what isn't there but could be."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))
    if isinstance(value, dict):
        name = value.get('type')
        found = find_types(name, 'mmpretrain', '') if is_listed(name, 'mmpretrain') else []
        more = accepted_arguments(found[0])[0] if found else []
        yield from ((*path, key) for key in sorted({*KEYS, *more} - value.keys()))


def every_type():
    """Names of every registry of every library, with the prefix of its scope and without."""
    roots = [each for scope in ('mmengine', 'mmpretrain', 'mmseg', 'vt') for each in registries(scope)]
    every = [registry for each in roots for registry in (each, *each.children.values())]
    names = {(each.scope, name) for each in every for name in each.module_dict}
    return sorted({*(name for _, name in names), *map('.'.join, names)})


def changed(content, path, value):
    content = copy.deepcopy(content)
    *way, last = path
    place = content
    for key in way:
        place = place[key]
    place[last] = value
    return content


def examples(content, seed):
    """Descriptions, each with one change, in an order that the seed gives."""
    draw, types = random.Random(seed), every_type()
    every = [path for path in places(content) if path]
    of_types = [path for path in every if path[-1] == 'type']
    while True:
        kind = draw.random()
        if kind < 0.35:
            yield changed(content, draw.choice(every), draw.choice([*TEXTS, *types]))
        elif kind < 0.5:
            yield changed(content, draw.choice(every), draw.choice(NUMBERS))
        elif kind < 0.65:
            yield changed(content, draw.choice(every), draw.choice(PARTS))
        elif kind < 0.8:
            yield changed(content, draw.choice(every), dict(type=draw.choice(types)))
        elif kind < 0.95:
            yield changed(content, draw.choice(of_types), draw.choice(types))
        else:
            two = changed(content, draw.choice(of_types), draw.choice(types))
            yield changed(two, draw.choice([path for path in places(two) if path]), draw.choice([*TEXTS, *NUMBERS]))


class Watch:
    """Notes the interpreter's events while it is on; those of a harmless reading are not noted again."""

    def __init__(self, allowed):
        self.on, self.allowed = False, allowed
        self.harmless, self.found = set(), []
        sys.addaudithook(self)

    def __call__(self, event, args):
        if not self.on or event in QUIET or event.partition('.')[0] not in WATCHED:
            return
        what = getattr(args[0], 'co_filename', None) or str(args[0])[:200] if args else ''
        if event == 'open' and os.path.realpath(what).startswith(self.allowed):
            return
        if self.on == 'harmless':
            self.harmless.add((event, what))
        elif (event, what) not in self.harmless:
            self.found.append((event, what))


def read(folder):
    """Every way to read a folder; whether it was refused."""
    lines = []
    for way in (lambda: apis.inferencer_of(apis.get_model(folder)), lambda: apis.inferencer_of(folder)):
        try:
            way()
        except UserError as error:
            lines.append(str(error))
    assert all(line.isprintable() for line in lines), lines
    return bool(lines)


def main(folder, seed, most, seconds):
    warnings.simplefilter('ignore')
    for scope in ('mmpretrain', 'mmseg'):  # harmless folders import one library or both
        import_library(scope)
        import_every_part(scope)
        check_config(Config(dict(model=dict(type='ReLU'), default_scope=scope)))
    shutil.copytree(folder, 'changed')
    path = Path('changed', folders.CONFIG)
    harmless = json.loads(path.read_text())
    watch = Watch(os.path.realpath('changed'))
    for each in (folder, 'changed', 'changed'):
        watch.on = 'harmless'
        assert not read(each)
        watch.on = False
    begin, tried, refused, slowest, broken = time.monotonic(), 0, 0, 0.0, []
    for content in examples(harmless, seed):
        if tried == most or time.monotonic() - begin > seconds:
            break
        path.write_text(json.dumps(content))
        start, number = time.monotonic(), len(watch.found)
        watch.on = 'changed'
        try:
            refused += read('changed')
        except Exception as error:
            broken.append(f'{type(error).__name__}: {error}'[:300])
        watch.on = False
        tried += 1
        slowest = max(slowest, time.monotonic() - start)
        if len(watch.found) > number or len(broken) > 20:
            broken.append(json.dumps(content)[:3000])
            break
    result = dict(tried=tried, refused=refused, found=watch.found, broken=broken)
    print(json.dumps(result | dict(slowest=round(slowest, 2), marked=Path(MARK).exists())))


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
