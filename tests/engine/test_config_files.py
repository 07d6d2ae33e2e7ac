"""One ``data_root`` is that of every data set of a config; a digest tells runs of different settings apart."""

import os
import subprocess
import sys

import pytest
from tool_runner import ROOT

from vt import apis
from vt.engine.checks.config import check_config
from vt.engine.prepare import leaves, read_config
from vt.engine.run_record import digest_config

LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')


def data_roots(config, **options):
    path = next((ROOT / 'configs').rglob(f'{config}.py'))
    cfg = read_config(str(path), options)
    return {leaf.data_root for loader in LOADERS for leaf in leaves(cfg[loader].dataset)}


@pytest.mark.parametrize(
    ('config', 'root'),
    [
        ('vt-resnet18_8xb32-90e_in1k', 'data/imagenet'),
        ('vt-resnet18_1xb128-90e_cifar100', 'data/cifar100'),
        ('vt-fpn_r50_4xb4-160k_ade20k-512x512', 'data/ade/ADEChallengeData2016'),
        ('mvit-base24-32x3_k600', 'data/kinetics600'),
        ('vt-resnet18_1xb32-90e_image-folder', 'data/images'),
        ('vt-resnet18_1xb32-90e_hugging-face', 'data/images'),
        ('vt-resnet18_1xb32-90e_multi-label', 'data/images'),
        ('vt-fpn_r50_1xb4-80k_hugging-face-512x512', 'data/scenes'),
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
    (tmp_path / 'own.py').write_text(
        f"_base_ = {bases}\nmodel = _base_.architecture\nmodel['head'] = dict(num_classes=3)"
    )
    model = apis.get_model(str(tmp_path / 'own.py'))
    assert model.head.fc.weight.shape == (3, 384)


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
    ('text', 'options'),
    [
        ('', {'train_cfg.max_epochs': 4}),
        ('', {'train_cfg.max_epochs': 3.5}),
        ('', {'randomness.deterministic': True}),
        ('', {'train_dataloader.dataset.data_root': 'elsewhere'}),
        ('', {'load_from': 'a.pth'}),
        ("model['names'] = {'a', 'b'}", {}),
        ("model['numbers'] = {1: 3}", {}),
        ("model['type'] = dict", {}),
        ('weights[2500] = 0', {}),
        ("model['sizes'] = (2, 1)", {}),
        ('optim_wrapper = dict()', {}),
    ],
)
def test_a_digest_is_of_every_setting(text, options, tmp_path):
    assert digest(tmp_path, text, **options) != digest(tmp_path)


@pytest.mark.parametrize(
    ('text', 'options'),
    [
        ('', {'randomness.seed': 7}),
        ('', {'work_dir': 'elsewhere'}),
        ('', {'train_cfg.max_epochs': 3}),
        ("model['sizes'] = [1, 2]", {}),  # as --cfg-options may give it
    ],
)
def test_a_digest_is_not_of_seed_place_and_ways_to_write(text, options, tmp_path):
    assert digest(tmp_path, text, **options) == digest(tmp_path)


def test_a_digest_is_not_of_the_machine(tmp_path):
    (tmp_path / 'c.py').write_text(CONFIG)
    cfg = read_config(str(tmp_path / 'c.py'))
    plain = digest_config(cfg)
    cfg.launcher, cfg.train_dataloader.pin_memory = 'slurm', True
    assert digest_config(cfg) == plain


def test_a_digest_is_the_same_in_every_process(tmp_path):
    """Whatever order their sets have, and whatever addresses their objects."""
    here = digest(tmp_path)
    code = 'from vt.engine.prepare import read_config; from vt.engine.run_record import digest_config; '
    code += 'print(digest_config(read_config("c.py")))'
    for seed in '12':
        env = os.environ | dict(PYTHONHASHSEED=seed, PYTHONPATH=str(ROOT))
        found = subprocess.run([sys.executable, '-c', code], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert found.stdout.strip() == here, found.stderr
