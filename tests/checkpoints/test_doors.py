"""Every way by which a checkpoint enters: a file that would run code does not, and the error is one line."""

import http.server
from functools import partial

import pytest
import torch
from checkpoints.hostile_files import in_checkpoint
from checkpoints.small_models import build_runner
from local_server import running
from mmengine.model import BaseModule
from mmengine.registry import WEIGHT_INITIALIZERS, build_from_cfg
from mmengine.runner import checkpoint as mmengine_checkpoint
from mmengine.runner import load_checkpoint
from mmengine.runner.checkpoint import CheckpointLoader, _load_checkpoint_with_prefix
from mmpretrain.models import ResNet
from tool_runner import ROOT, assert_one_line, call
from torch import nn

from vt.apis import get_model
from vt.checkpoints.loading import weights_only
from vt.checkpoints.publish import publish
from vt.checkpoints.reading import load_checkpoint as load_safely
from vt.checkpoints.weights import load_weights
from vt.errors import UserError
from vt.models.classifiers.teacher import Teacher, build_classifier

SGD = dict(type='SGD', lr=0.1)
CLASSIFIER = dict(type='mmpretrain.ImageClassifier', backbone=dict(type='LeNet5', num_classes=1))


@pytest.fixture
def marker(tmp_path):
    return tmp_path / 'marker'


@pytest.fixture
def hostile(tmp_path, marker):
    path = tmp_path / 'hostile.pth'
    in_checkpoint('exec')(path, marker)
    return path


def pretrained(path):
    return dict(type='Pretrained', checkpoint=str(path))


def runner_of(path, **options):
    return build_runner(path.with_name('run'), SGD, **dict(load_from=path) | options)


LIBRARIES = {  # within ``weights_only``
    'CheckpointLoader': lambda path: CheckpointLoader.load_checkpoint(str(path)),
    'load_checkpoint': lambda path: load_checkpoint(nn.Linear(1, 1), str(path)),
    'load_checkpoint below a prefix': lambda path: _load_checkpoint_with_prefix('backbone', str(path)),
    'init_cfg': lambda path: BaseModule(pretrained(path)).init_weights(),
    'an initializer': lambda path: build_from_cfg(pretrained(path), WEIGHT_INITIALIZERS)(nn.Linear(1, 1)),
    'ResNet': lambda path: ResNet(18, init_cfg=pretrained(path)).init_weights(),
}
OURS = {
    'teacher': lambda path: Teacher(CLASSIFIER, str(path), None, None, None),
    'load_weights': lambda path: load_weights(nn.Linear(1, 1), path),
    'publish': lambda path: publish(path, path.with_suffix('.safetensors')),
    'get_model': lambda path: get_model('vt-resnet18-half_digits', path),
    'get_model from initial weights': lambda path: get_model(
        'vt-resnet18-half_digits', backbone=dict(init_cfg=pretrained(path))
    ),
    'get_model from initial weights of a library': lambda path: get_model(
        'resnet18_8xb32-90e_in1k', backbone=dict(init_cfg=pretrained(path))
    ),
    'a run from it': lambda path: runner_of(path).train(),
    'a run that is resumed': lambda path: runner_of(path, resume=True).train(),
    'a test': lambda path: runner_of(path).load_checkpoint(str(path)),
    'a run of a pretrained part': lambda path: runner_of(
        path, load_from=None, model=dict(type='SmallLine', init_cfg=pretrained(path))
    ).train(),
}


@pytest.mark.parametrize('door', LIBRARIES | OURS)
def test_no_door_runs_it(door, hostile, marker):
    refused = r'hostile\.pth is not loaded: it contains builtins.exec, .+ add --trust-checkpoint to the command, .+$'
    if door in LIBRARIES:
        with weights_only(), pytest.raises(ValueError, match=refused):
            LIBRARIES[door](hostile)
    else:
        with pytest.raises(ValueError, match=refused):
            OURS[door](hostile)
    assert not marker.exists()


@pytest.fixture
def caches(tmp_path, monkeypatch):
    """Folders of downloads, so that nothing is fetched; that of PyTorch is returned."""
    monkeypatch.setenv('TORCH_HOME', str(tmp_path / 'torch'))
    monkeypatch.setenv('MMENGINE_HOME', str(tmp_path / 'mmengine'))
    monkeypatch.setenv('no_proxy', '*')
    (tmp_path / 'mmengine').mkdir()
    folder = tmp_path / 'torch/hub/checkpoints'
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize('name', ['torchvision://resnet18', 'open-mmlab://vgg16_caffe', 'openmmlab://vgg16_caffe'])
def test_names_of_downloaded_files(name, caches, marker):
    kind, model = name.split('://')
    zoos = mmengine_checkpoint.get_torchvision_models(), mmengine_checkpoint.get_external_models()
    path = caches / zoos[kind != 'torchvision'][model].rpartition('/')[2]
    in_checkpoint('exec')(path, marker)
    with weights_only(), pytest.raises(ValueError, match=r'it contains builtins\.exec'):
        CheckpointLoader.load_checkpoint(name)
    assert not marker.exists()
    torch.save(dict(state_dict={'backbone.a': torch.ones(1)}), path)
    assert load_safely(name)['state_dict']
    with weights_only(), pytest.raises(UserError, match='mmcls:// is not supported: download it and give its path'):
        CheckpointLoader.load_checkpoint('mmcls://vgg11')


def test_addresses(tmp_path, caches, hostile, marker):
    torch.save(dict(a=torch.ones(1)), tmp_path / 'good.pth')
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with weights_only(), running(http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)) as server:
        address = f'http://127.0.0.1:{server.server_port}'
        assert CheckpointLoader.load_checkpoint(f'{address}/good.pth')['a'] == 1
        for _ in range(2):  # fetched, then from the cache
            with pytest.raises(ValueError, match=r'hostile\.pth is not loaded: it contains builtins.exec'):
                CheckpointLoader.load_checkpoint(f'{address}/hostile.pth')
        with pytest.raises(OSError, match=r'none\.pth was not downloaded \(.+\): correct the name'):
            CheckpointLoader.load_checkpoint(f'{address}/none.pth')
    assert not marker.exists()


def test_libraries_that_load_by_themselves(hostile, marker, monkeypatch):
    """Some, as ``torch.hub``, ask PyTorch for reading that runs code."""
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
    with weights_only(), pytest.raises(Exception, match='Weights only load failed'):
        torch.load(hostile, weights_only=False)
    config = dict(type='mmpretrain.TimmClassifier', model_name='resnet18', checkpoint_path=str(hostile))
    with pytest.raises(Exception, match=r'hostile\.pth is not loaded: it contains builtins.exec'):
        build_classifier(config, None)
    assert not marker.exists()
    torch.load(hostile, weights_only=False)
    assert marker.exists()


def test_a_tool_ends_in_one_line_and_the_flag_trusts(hostile, marker, tmp_path):
    """All tools enter through one function."""
    arguments = ['analysis/show_tokens.py', ROOT / 'configs/vt_resnet/vt-resnet18_digits.py', hostile]
    assert_one_line(call(*arguments, cwd=tmp_path), 'hostile.pth is not loaded: it contains builtins.exec')
    assert not marker.exists()
    result = call(*arguments, '--trust-checkpoint', cwd=tmp_path)
    assert_one_line(result, 'hostile.pth does not fit the model')
    assert result.stderr.count('warning: --trust-checkpoint: code in checkpoints runs') == 1
    assert marker.exists()
