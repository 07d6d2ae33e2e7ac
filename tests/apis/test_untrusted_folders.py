"""Folders of saved models that a stranger wrote: whatever stands in them, nothing is run, opened, imported or fetched.

With ``VT_FUZZ_MINUTES=10`` in the environment new changes are tried for ten minutes in all.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from apis.fuzzing_folders import Watch
from apis.small_models import SMALL, make
from forked_tools import run_forked
from mmpretrain.models import GlobalAveragePooling
from tool_runner import assert_one_line

from vt import apis
from vt.apis.folders import describe, save_model
from vt.apis.saved_types import TYPES
from vt.engine.prepare import read_config
from vt.errors import UserError
from vt.registry import MODELS

HERE = Path(__file__).parent
MINUTES = float(os.environ.get('VT_FUZZ_MINUTES', 0))
CODE = "__import__('pathlib').Path('ran.txt').touch()"
TRAP = f'import pathlib\npathlib.Path("ran.txt").touch()\ndef run(*args, **kwargs):\n    {CODE}\n'


@pytest.fixture(scope='module')
def saved(tmp_path_factory):
    """The folders of some small models, by their names."""
    folder = tmp_path_factory.mktemp('saved by us')
    for name in SMALL:
        _, _, model, _ = make(folder, name)
        save_model(model, folder / 'saved' / name)
    return folder / 'saved'


@pytest.mark.parametrize('name', SMALL)
def test_changed_folders_do_nothing_that_a_harmless_one_does_not(name, saved, tmp_path):
    (tmp_path / 'trap_module.py').write_text(TRAP)
    for path in ('trap.pkl', 'trap.pth'):  # a pickle that touches ran.txt
        (tmp_path / path).write_bytes(b"cposix\nsystem\n(S'touch ran.txt'\ntR.")
    limits = ['1000000', str(60 * MINUTES / len(SMALL))] if MINUTES else ['60', '120']
    seed = str(time.time()) if MINUTES else '0'
    command = [sys.executable, HERE / 'fuzzing_folders.py', saved / name, seed, *limits]
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
    result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    outcome = json.loads(result.stdout.splitlines()[-1])
    print(name, outcome)
    assert outcome['found'] == outcome['broken'] == []
    assert not (tmp_path / 'ran.txt').exists()
    assert outcome['tried'] > outcome['refused'] > 0


# What ran code, or would have, where types alone were checked: the place in config.json and what was put there.
ATTACKS = {
    'an expression that a transform evaluates': (
        'pipeline',
        [dict(type='torchvision/ConvertImageDtype', dtype=CODE)],
    ),
    'a module that a backend imports': (
        'pipeline',
        [dict(type='LoadImageFromFile', backend_args=dict(backend='memcached', server_list_cfg='a', sys_path='.'))],
    ),
    'a pickle of weights of classes': ('model.head.loss.class_weight', 'trap.pkl'),
    'a pickle of margins': (
        'model.head',
        dict(type='ArcFaceClsHead', num_classes=10, in_channels=64, margins='trap.pkl'),
    ),
    'a data set of a pickle': ('test_dataloader', dict(dataset=dict(type='BaseDataset', ann_file='trap.pkl'))),
    'a checkpoint of a network': ('model.backbone.pretrained', 'trap.pth'),
    'a checkpoint to begin from': ('model.init_cfg', dict(type='Pretrained', checkpoint='trap.pth')),
    'a model of timm': ('model.backbone', dict(type='TIMMBackbone', model_name='resnet18', checkpoint_path='trap.pth')),
    'a model of timm in transformers': (
        'model.backbone',
        dict(
            type='vt.HuggingFaceBackbone',
            config=dict(model_type='timm_wrapper', architecture='x', model_args=dict(checkpoint_path='trap.pkl')),
        ),
    ),
    'code of transformers': (
        'model.backbone',
        dict(
            type='vt.FrozenBackbone',
            backbone=dict(type='vt.HuggingFaceBackbone', config=dict(auto_map=dict(AutoModel='trap_module.run'))),
        ),
    ),
    'a model of another hub': ('model', dict(type='HuggingFaceClassifier', model_name='me/trap', pretrained=True)),
    'a generator of targets': ('model.neck', dict(type='CLIPGenerator', tokenizer_path='trap.pth')),
    'another package as scope': ('model.neck._scope_', 'trap_module'),
    'a function by its name': ('model.neck.type', 'trap_module.run'),
    'a layer by its name': ('model.backbone.conv_cfg', dict(type='trap_module.run')),
    'a layer of torch by its name': ('model.backbone.conv_cfg', dict(type='torch.hub.load')),
}


@pytest.mark.parametrize('attack', ATTACKS)
def test_attacks_are_refused_by_all_doors(attack, saved, tmp_path):
    folder = tmp_path / 'model'
    shutil.copytree(saved / 'vt-resnet18-half_digits', folder)
    for place in (tmp_path, folder):
        (place / 'trap_module.py').write_text(TRAP)
        for name in ('trap.pkl', 'trap.pth'):
            (place / name).write_bytes(b"cposix\nsystem\n(S'touch ran.txt'\ntR.")
    content = json.loads((folder / 'config.json').read_text())
    (*way, last), value = ATTACKS[attack][0].split('.'), ATTACKS[attack][1]
    place = content
    for key in way:
        place = place[key]
    place[last] = value
    (folder / 'config.json').write_text(json.dumps(content))
    (tmp_path / 'a.png').write_bytes(b'')
    if attack == 'code of transformers':  # the tool opens no other door
        assert_one_line(run_forked('predict.py', 'model', 'model', 'a.png', cwd=tmp_path), 'model/config.json')
    for read in (apis.get_model, apis.inferencer_of):
        with pytest.raises(UserError, match=r'config\.json'):
            read(folder)
    assert not [*tmp_path.rglob('ran.txt')]


def test_a_scope_that_its_parts_replace_is_not_imported(saved, tmp_path):
    """With an override the config is checked by mmengine's look-ups, which import the package of the scope."""
    shutil.copytree(saved / 'vt-resnet18-half_digits', tmp_path / 'model')
    content = json.loads((tmp_path / 'model/config.json').read_text())
    content['scope'] = 'trap_module'
    for part in (content['model'], *content['pipeline']):
        part['_scope_'] = 'mmpretrain'
    (tmp_path / 'model/config.json').write_text(json.dumps(content))
    watch = Watch(str(tmp_path))
    watch.on = 'changed'
    with pytest.raises(UserError, match="scope='trap_module' is none of mmpretrain, mmseg"):
        apis.get_model(tmp_path / 'model', head=dict(num_classes=10))
    watch.on = False
    assert not [each for each in watch.found if 'trap_module' in each[1]]


def test_types_are_no_names_of_modules(saved, tmp_path):
    """mmengine's registries import a module of the name of a type that they do not hold."""
    content = (saved / 'vt-resnet18-half_digits' / 'config.json').read_text()
    names = {kind.rpartition('.')[2] for kind in re.findall(r'"type": "(.+)"', content)}
    for name in names:
        (tmp_path / f'{name}.py').write_text(TRAP)
    code = 'import sys; from vt import apis; apis.inferencer_of(sys.argv[1])'
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([*sys.path, str(tmp_path)]))
    command = [sys.executable, '-c', code, saved / 'vt-resnet18-half_digits']
    subprocess.run(command, cwd=tmp_path, env=env, check=True)
    assert {'VTResNet', 'PackInputs'} <= names
    assert not (tmp_path / 'ran.txt').exists()


def test_a_users_own_part_is_saved_and_read_once_it_is_listed(tmp_path, monkeypatch):
    monkeypatch.setitem(MODELS.module_dict, 'OwnNeck', GlobalAveragePooling)
    cfg = read_config(str(apis.find_config('resnet18-half_digits')))
    cfg.model.neck = dict(type='vt.OwnNeck', dim=2)
    with pytest.raises(UserError, match=r"model\.neck\.type='vt\.OwnNeck' is none of the types of saved models"):
        describe(cfg)
    monkeypatch.setitem(TYPES, 'vt', f'{TYPES["vt"]} OwnNeck')
    model = apis.get_model(cfg)
    save_model(model, tmp_path)
    images = torch.rand(2, 3, 32, 32)
    assert torch.equal(apis.get_model(tmp_path)(images), model(images))


def test_a_distilled_model_is_saved_without_its_teacher():
    cfg = read_config(str(apis.find_config('vt-resnet18-advanced_digits')))
    model = describe(cfg)['model']
    assert model['type'] == 'ImageClassifier'
    assert not {'teacher', 'teacher_checkpoint', 'distillation_weight', 'train_cfg'} & model.keys()


def test_a_step_that_a_folder_can_not_hold_is_named():
    cfg = read_config(str(apis.find_config('vt-resnet18_digits')))
    cfg.test_dataloader.dataset.pipeline.insert(0, dict(type='Solarize', thr=128))
    with pytest.raises(UserError, match=r"pipeline\.0\.type='Solarize' is none of the types of saved models"):
        describe(cfg)


@pytest.mark.parametrize('part', ['TIMMBackbone', 'vt.HuggingFaceBackbone', 'vt.LoRAModel'])
def test_a_model_with_another_part_is_refused_when_it_is_saved(part, tmp_path):
    cfg = read_config(str(apis.find_config('resnet18-half_digits')))
    model = apis.get_model(cfg)
    cfg.model.backbone = dict(type=part)
    with pytest.raises(
        UserError, match=rf"^model\.backbone\.type='{part}' is none .* \(tools/publish\.py\) and a config$"
    ):
        save_model(model, tmp_path, cfg)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize('name', ['config.json', 'model.safetensors'])
def test_links_out_of_a_folder_are_not_followed(name, saved, tmp_path):
    """Except those of huggingface_hub's cache, into the same folder of a repository."""
    snapshot, blobs = tmp_path / 'models--me--model/snapshots/0123', tmp_path / 'models--me--model/blobs'
    shutil.copytree(saved / 'vt-resnet18-half_digits', snapshot)
    blobs.mkdir()
    (snapshot / name).rename(blobs / 'abc')
    (snapshot / name).symlink_to('../../blobs/abc')
    assert apis.get_model(snapshot).dataset_meta
    elsewhere = tmp_path / 'model'
    shutil.copytree(snapshot, elsewhere, symlinks=True)
    (elsewhere / name).unlink()
    (elsewhere / name).symlink_to(blobs / 'abc')
    (blobs / 'abc').rename(tmp_path / 'abc')
    (blobs / 'abc').symlink_to(tmp_path / 'abc')
    for folder in (snapshot, elsewhere):
        for read in (apis.get_model, apis.inferencer_of, lambda folder: apis.get_model('vt-resnet18_digits', folder)):
            if read in (apis.get_model, apis.inferencer_of) or name == 'model.safetensors':
                with pytest.raises(
                    UserError, match=rf'{name} is a link out of its folder, which is not followed: copy'
                ):
                    read(folder)
