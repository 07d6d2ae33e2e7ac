"""Folders of saved models that a stranger wrote: whatever stands in them, nothing is run, opened, imported or fetched.

With ``VT_FUZZ_EXAMPLES=10000`` in the environment so many new changes of each model are tried.
"""

import contextlib
import copy
import json
import os
import random
import re
import shutil
import subprocess
import sys

import pytest
import torch
from apis.small_models import SMALL
from audit import Watch
from hypothesis import given, settings
from hypothesis import strategies as st
from mmengine.config import Config
from tool_runner import assert_one_line, call

from vt import apis
from vt._libraries import import_library
from vt.engine.config.check_settings import accepted_arguments, check_config, find_types, registries
from vt.errors import MissingFileError, UserError
from vt.registry import import_every_part
from vt.serialization.saved_types import NAME_ARGS, STRINGS, is_listed

CLASSIFIER = 'vt-resnet18-half_digits'
EXAMPLES = int(os.environ.get('VT_FUZZ_EXAMPLES', 0))
CODE = "__import__('pathlib').Path('ran.txt').touch()"
TRAP = f'import pathlib\npathlib.Path("ran.txt").touch()\ndef run(*args, **kwargs):\n    {CODE}\n'
PICKLE = b"cposix\nsystem\n(S'touch ran.txt'\ntR."
READERS = apis.get_model, apis.inferencer_of


@pytest.fixture
def trapped(tmp_path, monkeypatch):
    """A folder that one works in, with modules and files that leave ``ran.txt`` where they are used."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / 'trap_module.py').write_text(TRAP)
    for name in ('trap.pkl', 'trap.pth'):
        (tmp_path / name).write_bytes(PICKLE)
    yield tmp_path
    assert not [*tmp_path.rglob('ran.txt')]
    assert 'trap_module' not in sys.modules


@pytest.fixture(scope='module')
def watch(saved, tmp_path_factory):
    """It has seen what reading harmless folders does."""
    os.environ.setdefault('PYTORCH_NVML_BASED_CUDA_CHECK', '1')  # as commands do: a look for GPUs opens NVML's library
    for scope in ('mmpretrain', 'mmseg'):  # harmless folders import one library or both
        import_library(scope)
        import_every_part(scope)
        check_config(Config(dict(model=dict(type='ReLU'), default_scope=scope)))
    watch = Watch(tmp_path_factory.getbasetemp())
    with watch.harmless():
        for folder in [*saved.values()] * 2:
            for read in READERS:
                read(folder)
    return watch


def changed(content, place, value):
    """A config with something else at a path."""
    content = inner = copy.deepcopy(content)
    *way, last = place.split('.') if isinstance(place, str) else place
    for key in way:
        inner = inner[key]
    inner[last] = value
    return content


def at(content, path):
    """What stands at a path, None if nothing does."""
    for key in path:
        content = content.get(key) if isinstance(content, dict) else content[key]
    return content


def write_into(folder, content):
    (folder / 'config.json').write_text(content if isinstance(content, str) else json.dumps(content))


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
MEMCACHED = dict(type='LoadImageFromFile', backend_args=dict(backend='memcached', server_list_cfg='a', sys_path='.'))
PARTS = [
    dict(type='Pretrained', checkpoint='trap.pth'),
    dict(type='torchvision/ConvertImageDtype', dtype=CODE),
    MEMCACHED,
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


def refusal_of(read, folder):
    try:
        read(folder)
    except UserError as error:
        return [str(error)]
    return []


@pytest.mark.parametrize('name', SMALL)
def test_changed_folders_do_nothing_that_a_harmless_one_does_not(name, saved, trapped, watch):
    folder, refused = shutil.copytree(saved[name], trapped / 'changed'), []
    content, types = json.loads((folder / 'config.json').read_text()), st.sampled_from(every_type())
    every = [path for path in places(content) if path]
    anywhere, of_types = st.sampled_from(every), st.sampled_from([path for path in every if path[-1] == 'type'])
    of_numbers = st.sampled_from([path for path in every if type(at(content, path)) in (int, float)])
    values = st.sampled_from(TEXTS) | types | st.sampled_from(NUMBERS) | st.sampled_from(PARTS)
    changes = st.tuples(anywhere, values | st.builds(dict, type=types)) | st.tuples(of_types, types)
    changes |= st.tuples(of_numbers, st.sampled_from([1, 2, 3, 0.5]))  # of which some are accepted

    @settings(max_examples=EXAMPLES or 40, derandomize=not EXAMPLES)
    @given(changes)
    def read_changed(change):
        write_into(folder, changed(content, *change))
        refused.append(True)
        with watch.events() as events:
            for read in READERS:
                lines = refusal_of(read, folder)
                refused[-1] &= bool(lines)
                assert ''.join(lines).isprintable()
        assert events == []

    read_changed()
    assert len(refused) > sum(refused) > 0


HUGGING_FACE = 'vt.HuggingFaceBackbone'
WRAPPER = dict(model_type='timm_wrapper', architecture='x', model_args=dict(checkpoint_path='trap.pkl'))
REMOTE = dict(type=HUGGING_FACE, config=dict(auto_map=dict(AutoModel='trap_module.run')))
# What ran code, or would have, where types alone were checked: the place in config.json and what was put there.
ATTACKS = {
    'an expression that a transform evaluates': ('pipeline', [PARTS[1]]),
    'a module that a backend imports': ('pipeline', [MEMCACHED]),
    'a pickle of weights of classes': ('model.head.loss.class_weight', 'trap.pkl'),
    'a pickle of margins': ('model.head', PARTS[8] | dict(margins='trap.pkl')),
    'a data set of a pickle': ('test_dataloader', dict(dataset=PARTS[4])),
    'a checkpoint of a network': ('model.backbone.pretrained', 'trap.pth'),
    'a checkpoint to begin from': ('model.init_cfg', PARTS[0]),
    'a model of timm': ('model.backbone', dict(type='TIMMBackbone', model_name='resnet18', checkpoint_path='trap.pth')),
    'a model of timm in transformers': ('model.backbone', dict(type=HUGGING_FACE, config=WRAPPER)),
    'code of transformers': ('model.backbone', dict(type='vt.FrozenBackbone', backbone=REMOTE)),
    'a model of another hub': ('model', PARTS[6]),
    'a generator of targets': ('model.neck', PARTS[9]),
    'another package as scope': ('model.neck._scope_', 'trap_module'),
    'a function by its name': ('model.neck.type', 'trap_module.run'),
    'a layer by its name': ('model.backbone.conv_cfg', dict(type='trap_module.run')),
    'a layer of torch by its name': ('model.backbone.conv_cfg', dict(type='torch.hub.load')),
}
# What reads files, fetches, or has a part that does.
READING = """
    ArcFaceClsHead CLIPGenerator CLIPTextEncoder DistilledClassifier HuggingFaceBackbone HuggingFaceClassifier
    ImageToImageRetriever Llava Pretrained TIMMBackbone TimmBackbone TimmClassifier TokenLabelClassifier VPD VQKD
    VQAGenerationHead
"""


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('scope', ['vt', 'mmpretrain', 'mmseg', 'mmengine'])
def test_no_allowed_type_opens_anything_whatever_it_is_built_with(scope, trapped, watch, monkeypatch):
    """Allowed strings and numbers, in many networks that are seldom saved; most of them raise an error."""
    monkeypatch.setenv('PYTORCH_NVML_BASED_CUDA_CHECK', '1')  # as a tool sets it
    with watch.harmless():
        torch.cuda.is_available()  # some ask
    names = [name for each in registries(scope) if each.name == 'model' for name in each.module_dict]
    names = [name for name in names if is_listed(f'{scope}.{name}', 'mmseg')]
    assert len(names) > 50
    assert not {*names} & {*READING.split()}
    draw, built = random.Random(0), 0
    for part in (find_types(name, scope, '')[0] for name in names):
        arguments = accepted_arguments(part)[0].values()
        required = [each.name for each in arguments if each.default is each.empty and each.name != 'kwargs']
        for number in range(6):
            chosen = {*required, *draw.sample([each.name for each in arguments], min(number, len(arguments)))}
            given = {name: draw.choice(allowed_values(name)) for name in sorted(chosen)}
            with watch.events() as events, contextlib.suppress(Exception), torch.device('meta'):
                part(**given)
                built += 1
            assert events == [], (part, given)
    assert built > len(names)


def allowed_values(argument):
    """What a folder may give to an argument; a name may be that of a file."""
    strings = STRINGS.get(argument, '').split() + ['tiny', 'base', 'trap.pkl', 'trap.pth'] * (argument in NAME_ARGS)
    return strings * 3 + [1, 2, 4, 8, 0.5, None, True, (2, 4), [4, 8, 16, 32], dict(type='BN'), dict(type='ReLU')]


CROP = dict(type='CenterCrop', crop_size=32)
# What is no attack: what is put where, or the whole text, and how it is refused.
BAD = {
    'a word': ('"library, format, scope, model, pipeline"', 'config.json is damaged: content is '),
    'no JSON': ('model = dict()', 'is damaged: JSONDecodeError: Expecting value'),
    'too deep': ('[' * 200_000, 'is damaged: RecursionError: '),
    'no number': ('model.backbone.num_tokens', float('nan'), 'num_tokens=nan is not a string, or a number up to 131'),
    'another format': ('format', 1, 'is not a model of visual-transformers in format 4'),
    'a function': ('model.neck.type', 'os.system', "neck.type='os.system' is not allowed in a saved model"),
    'another scope': ('scope', 'os', "scope='os' must be one of mmpretrain, mmseg"),
    'weights to begin from': ('model.init_cfg', {}, "model has the key 'init_cfg', which is not allowed"),
    'a wrong number': ('model.backbone.depth', 'eighteen', "depth='eighteen' is not allowed in a saved model"),
    'an expression': ('pipeline', [dict(type='Resize', interpolation='1+1')], "0.interpolation='1+1' is not allowed"),
    'a step of another size': ('pipeline', [CROP | dict(crop_size=-1)], 'is damaged: AssertionError'),
    'a shape of text': ('shape', ['3', 32, 32], "shape=['3', 32, 32] is not a valid input shape"),
    'names beside the weights': ('classes', ['a'], 'classes is not a key of the config of a saved model'),
    'weights of another model': (
        'model.head.num_classes',
        3,
        'does not fit the model: head.fc.weight has shape (10, 64)',
    ),
}


@pytest.mark.parametrize('kind', ATTACKS | BAD)
def test_what_a_folder_may_not_hold_is_one_line_and_nothing_of_it_happens(kind, saved, trapped, watch):
    folder = shutil.copytree(saved[CLASSIFIER], trapped / 'changed')
    for path in [*trapped.glob('trap*')]:
        shutil.copy(path, folder)
    *change, message = BAD.get(kind) or (*ATTACKS[kind], 'config.json')
    content = json.loads((folder / 'config.json').read_text())
    write_into(folder, changed(content, *change) if len(change) == 2 else change[0])
    with watch.events() as events:
        for read in READERS:
            with pytest.raises(UserError) as error:
                read(folder)
            assert message in str(error.value)
            assert '\n' not in str(error.value)
            assert str(folder) in str(error.value)
    assert events == []
    if kind == 'code of transformers':  # the tool opens no other door
        (trapped / 'a.png').write_bytes(b'')
        assert_one_line(call('predict.py', 'changed', 'changed', 'a.png', cwd=trapped), 'changed/config.json')


def test_a_scope_that_its_parts_replace_is_not_imported(saved, trapped, watch):
    """With an override the config is checked by mmengine's look-ups, which import the package of the scope."""
    folder = shutil.copytree(saved[CLASSIFIER], trapped / 'changed')
    content = json.loads((folder / 'config.json').read_text())
    content['scope'] = 'trap_module'
    for part in (content['model'], *content['pipeline']):
        part['_scope_'] = 'mmpretrain'
    write_into(folder, content)
    with (
        watch.events() as events,
        pytest.raises(UserError, match="scope='trap_module' must be one of mmpretrain, mmseg"),
    ):
        apis.get_model(folder, head=dict(num_classes=10))
    assert not [each for each in events if 'trap_module' in each[1]]


@pytest.mark.slow  # it needs a process that has imported no model
def test_types_are_no_names_of_modules(saved, tmp_path):
    """mmengine's registries import a module of the name of a type that they do not hold."""
    content = (saved[CLASSIFIER] / 'config.json').read_text()
    names = {kind.rpartition('.')[2] for kind in re.findall(r'"type": "(.+)"', content)}
    for name in names:
        (tmp_path / f'{name}.py').write_text(TRAP)
    code = 'import sys; from vt import apis; apis.inferencer_of(sys.argv[1])'
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([*sys.path, str(tmp_path)]))
    subprocess.run([sys.executable, '-c', code, saved[CLASSIFIER]], cwd=tmp_path, env=env, check=True)
    assert {'VTResNet', 'PackInputs'} <= names
    assert not (tmp_path / 'ran.txt').exists()


@pytest.mark.parametrize('name', ['config.json', 'model.safetensors'])
def test_a_file_that_is_missing_or_a_link_out_of_its_folder_is_refused(name, saved, tmp_path):
    """Except links of huggingface_hub's cache, into the same folder of a repository."""
    snapshot, blobs = tmp_path / 'models--me--model/snapshots/0123', tmp_path / 'models--me--model/blobs'
    shutil.copytree(saved[CLASSIFIER], snapshot)
    blobs.mkdir()
    (snapshot / name).rename(blobs / 'abc')
    for read in READERS:
        with pytest.raises(MissingFileError, match=rf'there is no .*0123/{name}'):
            read(snapshot)
    (snapshot / name).symlink_to('../../blobs/abc')
    assert apis.get_model(snapshot).dataset_meta
    elsewhere = tmp_path / 'model'
    shutil.copytree(snapshot, elsewhere, symlinks=True)
    (elsewhere / name).unlink()
    (elsewhere / name).symlink_to(blobs / 'abc')
    (blobs / 'abc').rename(tmp_path / 'abc')
    (blobs / 'abc').symlink_to(tmp_path / 'abc')
    as_checkpoint = [lambda folder: apis.get_model('vt-resnet18_digits', folder)] * (name == 'model.safetensors')
    for folder in (snapshot, elsewhere):
        for read in (*READERS, *as_checkpoint):
            with pytest.raises(UserError, match=rf'{name} links to a file outside its folder: copy'):
                read(folder)
