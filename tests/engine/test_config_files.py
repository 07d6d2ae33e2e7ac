"""What shipped configs have in common; a digest tells runs of different settings apart, and a record where they ran."""

import re
import shlex
import sys
from functools import partial

import pytest
from mmengine.config import Config
from tool_runner import ROOT

from vt import apis
from vt.engine.config.check_settings import check_config
from vt.engine.config.parts import leaves
from vt.engine.config.steps import read_config
from vt.engine.run.record import describe_origin, digest_config
from vt.errors import UserError
from vt.hints import typed_start

AS_EDITORS_WRITE = {
    'byte order mark': '\ufeffcaf\u00e9\r\ntea\r\n'.encode(),
    'blank lines': '\ncaf\u00e9 \n\n tea\n\n'.encode(),
    'UTF-16': '\ufeffcaf\u00e9\r\ntea\r\n'.encode('utf-16-le'),
    'old Mac': 'caf\u00e9\rtea'.encode(),
}
LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')


@pytest.mark.parametrize('content', AS_EDITORS_WRITE.values(), ids=AS_EDITORS_WRITE)
def test_a_list_of_classes_is_its_names(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'names.txt').write_bytes(content)
    options = {'train_dataloader.dataset.classes': 'names.txt', 'val_dataloader.dataset.metainfo.classes': 'names.txt'}
    cfg = read_config(str(ROOT / 'configs/vt_resnet/vt-resnet18_1xb32-90e_image-folder.py'), options)
    found = cfg.train_dataloader.dataset.classes, cfg.val_dataloader.dataset.metainfo.classes
    assert found == (['caf\u00e9', 'tea'],) * 2
    (tmp_path / 'names.txt').write_bytes(b'caf\xe9\n')
    with pytest.raises(UserError, match=r'names\.txt is not UTF-8 text: save it'):
        read_config(str(ROOT / 'configs/vt_resnet/vt-resnet18_1xb32-90e_image-folder.py'), options)


def data_roots(config, **options):
    cfg = read_config(str(next((ROOT / 'configs').rglob(f'{config}.py'))), options)
    return {leaf.data_root for loader in LOADERS for leaf in leaves(cfg[loader].dataset)}


@pytest.mark.parametrize(
    ('config', 'root'),
    [
        ('vt-resnet18_8xb32-90e_in1k', 'data/imagenet'),
        ('vt-fpn_r50_4xb4-160k_ade20k-512x512', 'data/ade/ADEChallengeData2016'),
        ('mvit-base24-32x3_k600', 'data/kinetics600'),
        ('vt-resnet18_1xb32-90e_hugging-face', 'data/images'),
        ('vt-fpn_r18_1xb4-20k_images-and-masks-512x512', 'data/scenes'),
    ],
)
def test_one_data_root_is_every_splits(config, root):
    assert data_roots(config) == {root}
    assert data_roots(config, data_root='elsewhere') == {'elsewhere'}
    own = {'train_dataloader.dataset.data_root': 'own', 'data_root': 'elsewhere'}
    assert data_roots(config, **own) == {'own', 'elsewhere'}


@pytest.mark.parametrize('name', ['vt_resnet/vt-resnet18-tuned_digits.py', 'vt_fpn/vt-fpn_r18_digit-scenes.py'])
def test_a_config_inherits_one_of_the_package(name, tmp_path):
    """Parts are those of the config's own library, not looked up in the scope ``vt``."""
    (tmp_path / 'own.py').write_text(f"_base_ = 'vt::{name}'")
    own = read_config(str(tmp_path / 'own.py'))
    check_config(own)
    assert own.to_dict() == read_config(str(ROOT / 'configs' / name)).to_dict()


def test_a_config_takes_a_model_of_the_package(tmp_path):
    bases = ['vt::_base_/models/deit-small.py', 'vt::_base_/recipes/fine_tune_image-folder.py']
    text = f"_base_ = {bases}\nmodel = _base_.architecture\nmodel['head'] = dict(num_classes=3)"
    (tmp_path / 'own.py').write_text(text)
    assert apis.get_model(str(tmp_path / 'own.py')).head.fc.weight.shape == (3, 384)


CONFIG = """
_base_ = []
from functools import partial
from collections import OrderedDict
from numpy import arange
weights = arange(5000)
model = dict(type=OrderedDict, names={'a', 'b', 'c'}, sizes=(1, 2), part=partial(sorted, reverse=True), numbers={1: 2})
train_dataloader = dict(batch_size=4, num_workers=0, dataset=dict(type='Digits'))
train_cfg = dict(max_epochs=3)
randomness = dict(seed=0)
"""


def digest(folder, text='', **options):
    (folder / 'c.py').write_text(CONFIG + text)
    return digest_config(read_config(str(folder / 'c.py'), options))


@pytest.mark.parametrize(
    ('text', 'options', 'is_another'),
    [
        ('', {'train_cfg.max_epochs': 4}, True),
        ('', {'randomness.deterministic': True}, True),
        ('', {'train_dataloader.dataset.data_root': 'elsewhere'}, True),
        ('', {'load_from': 'a.pth'}, True),
        ("model['names'] = {'a', 'b'}", {}, True),
        ('weights[2500] = 0', {}, True),
        ("model['sizes'] = (2, 1)", {}, True),
        ('', {'randomness.seed': 7}, False),
        ('', {'work_dir': 'elsewhere'}, False),
        ("model['sizes'] = [1, 2]", {}, False),  # as --cfg-options may give it
    ],
)
def test_a_digest_is_of_every_setting_but_seed_place_and_ways_to_write(text, options, is_another, tmp_path):
    assert (digest(tmp_path, text, **options) != digest(tmp_path)) == is_another


def test_a_digest_is_not_of_the_machine(tmp_path):
    before = digest(tmp_path)
    cfg = read_config(str(tmp_path / 'c.py'))
    cfg.launcher, cfg.train_dataloader.pin_memory = 'slurm', True
    assert digest_config(cfg) == before


def test_a_digest_is_the_same_in_every_process():
    """Whatever order their sets have, and whatever addresses their objects."""
    sets = {0, 8}, {8, 0}
    assert [*sets[0]] != [*sets[1]]
    first, second = (Config(dict(part=partial(sorted, reverse=True), numbers=numbers)) for numbers in sets)
    assert first.part is not second.part
    assert digest_config(first) == digest_config(second)


@pytest.mark.parametrize(('program', 'shown'), [('tools/a b.py', "'tools/a b.py'"), ('../other.py', None)])
def test_a_command_names_no_folder_of_the_machine(tmp_path, monkeypatch, program, shown):
    (tmp_path / 'here').mkdir()
    monkeypatch.chdir(tmp_path / 'here')
    path = (tmp_path / 'here' / program).resolve()
    for called, expected in ((str(path), shown or shlex.quote(str(path))), (program, shown or program)):
        monkeypatch.setattr(sys, 'argv', [called, 'config.py', '--x'])
        assert describe_origin()['command'] == f'python {expected} config.py --x'
    for start in ('vt train', 'python -m vt train'):
        monkeypatch.setattr(sys, 'argv', [start, 'config.py'])
        assert (typed_start(), describe_origin()['command']) == (start, 'python -m vt train config.py')


NAME = re.compile(r'_(\d+)xb(\d+)-')
CONFIGS = sorted(path for path in ROOT.glob('configs/*/**/*.py') if NAME.search(path.name))


@pytest.mark.parametrize('path', CONFIGS, ids=lambda path: path.stem)
def test_a_scaled_rate_starts_from_the_batch_of_a_configs_name(path):
    """``4xb8`` is 4 processes with 8 images each."""
    processes, batch_size = map(int, NAME.search(path.name).groups())
    cfg = Config.fromfile(path)
    accumulated = cfg.optim_wrapper.get('accumulative_counts', 1)
    assert cfg.train_dataloader.batch_size == batch_size
    assert cfg.auto_scale_lr.base_batch_size == processes * batch_size * accumulated
