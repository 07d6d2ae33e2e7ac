"""Every way by which a checkpoint enters: a file that would run code does not, and the tools end in one line."""

import contextlib
import http.server
import json
import threading

import pytest
import torch
from checkpoints.hostile_files import CALLS, in_checkpoint, python_that_makes
from checkpoints.small_models import build_runner
from forked_tools import run_forked
from mmengine.model import BaseModule
from mmengine.registry import WEIGHT_INITIALIZERS, build_from_cfg
from mmengine.runner import checkpoint as mmengine_checkpoint
from mmengine.runner import load_checkpoint
from mmengine.runner.checkpoint import CheckpointLoader, _load_checkpoint_with_prefix
from mmpretrain.models import ResNet
from tool_runner import ROOT, SMALL_CLASSIFIER, assert_one_line
from torch import nn

from vt.checkpoints.loading import weights_only
from vt.checkpoints.publishing import publish
from vt.checkpoints.reading import load_checkpoint as load_safely
from vt.checkpoints.weights import load_weights
from vt.errors import UserError
from vt.models.classifiers.teacher import Teacher, build_classifier

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
SGD = dict(type='SGD', lr=0.1)
FEW = ['train_cfg.max_epochs=1', *SMALL_CLASSIFIER]


@pytest.fixture
def marker(tmp_path):
    return tmp_path / 'marker'


@pytest.fixture
def hostile(tmp_path, marker):
    path = tmp_path / 'hostile.pth'
    in_checkpoint(CALLS['exec'])(path, marker)
    return path


class Part(BaseModule):
    def __init__(self, checkpoint, **options):
        super().__init__(dict(type='Pretrained', checkpoint=str(checkpoint), **options))
        self.layer = nn.Linear(1, 1)


CLASSIFIER = dict(type='mmpretrain.ImageClassifier', backbone=dict(type='LeNet5', num_classes=1))
DOORS = {
    'CheckpointLoader': lambda path: CheckpointLoader.load_checkpoint(str(path)),
    'load_checkpoint': lambda path: load_checkpoint(nn.Linear(1, 1), str(path)),
    'load_checkpoint below a prefix': lambda path: _load_checkpoint_with_prefix('backbone', str(path)),
    'init_cfg': lambda path: Part(path).init_weights(),
    'an initializer': lambda path: build_from_cfg(dict(type='Pretrained', checkpoint=str(path)), WEIGHT_INITIALIZERS)(
        nn.Linear(1, 1)
    ),
    'ResNet': lambda path: ResNet(18, init_cfg=dict(type='Pretrained', checkpoint=str(path))).init_weights(),
    'teacher': lambda path: Teacher(CLASSIFIER, str(path), None, None, None),
    'load_weights': lambda path: load_weights(nn.Linear(1, 1), path),
    'publish': lambda path: publish(path, path.with_suffix('.safetensors')),
}


@pytest.mark.parametrize('door', DOORS)
def test_no_door_runs_it(door, hostile, marker):
    refused = r'hostile\.pth is not loaded: it asks for builtins.exec, .+ add --trust-checkpoint$'
    with weights_only(), pytest.raises(ValueError, match=refused):
        DOORS[door](hostile)
    assert not marker.exists()


@pytest.fixture
def caches(tmp_path, monkeypatch):
    """Folders of downloads, so that nothing is fetched; that of PyTorch is returned."""
    monkeypatch.setenv('TORCH_HOME', str(tmp_path / 'torch'))
    monkeypatch.setenv('MMENGINE_HOME', str(tmp_path / 'mmengine'))
    (tmp_path / 'mmengine').mkdir()
    folder = tmp_path / 'torch/hub/checkpoints'
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize('name', ['torchvision://resnet18', 'open-mmlab://vgg16_caffe', 'openmmlab://vgg16_caffe'])
def test_names_of_downloaded_files(name, caches, marker):
    kind, model = name.split('://')
    zoos = mmengine_checkpoint.get_torchvision_models(), mmengine_checkpoint.get_external_models()
    path = caches / zoos[kind != 'torchvision'][model].rpartition('/')[2]
    in_checkpoint(CALLS['exec'])(path, marker)
    with weights_only(), pytest.raises(ValueError, match=r'it asks for builtins\.exec'):
        CheckpointLoader.load_checkpoint(name)
    assert not marker.exists()
    torch.save(dict(state_dict={'backbone.a': torch.ones(1)}), path)
    assert load_safely(name)['state_dict']
    with weights_only(), pytest.raises(UserError, match='mmcls:// is not supported: download it and give its path'):
        CheckpointLoader.load_checkpoint('mmcls://vgg11')


def test_names_that_a_user_adds(tmp_path, caches, hostile, marker):
    (tmp_path / 'mmengine/open_mmlab.json').write_text(json.dumps(dict(mine=str(hostile))))
    with weights_only(), pytest.raises(ValueError, match=r'it asks for builtins\.exec'):
        CheckpointLoader.load_checkpoint('openmmlab://mine')
    assert not marker.exists()


@contextlib.contextmanager
def served(folder):
    """An address whose files are those of a folder."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=folder)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f'http://127.0.0.1:{server.server_port}'
    finally:
        server.shutdown()
        server.server_close()


def test_addresses(tmp_path, caches, hostile, marker, monkeypatch):
    monkeypatch.setenv('no_proxy', '*')
    torch.save(dict(a=torch.ones(1)), tmp_path / 'good.pth')
    with served(tmp_path) as address, weights_only():
        assert CheckpointLoader.load_checkpoint(f'{address}/good.pth')['a'] == 1
        for _ in range(2):  # fetched, then from the cache
            with pytest.raises(ValueError, match=r'hostile\.pth is not loaded: it asks for builtins.exec'):
                CheckpointLoader.load_checkpoint(f'{address}/hostile.pth')
        with pytest.raises(OSError, match=r'none\.pth was not downloaded \(.+\): correct the name'):
            CheckpointLoader.load_checkpoint(f'{address}/none.pth')
    assert not marker.exists()


def test_libraries_that_load_by_themselves(hostile, marker, monkeypatch):
    """Some, as ``torch.hub``, ask PyTorch for reading that runs code."""
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
    with weights_only(), pytest.raises(Exception, match='Weights only load failed'):
        torch.load(hostile, weights_only=False)
    assert not marker.exists()
    torch.load(hostile, weights_only=False)
    assert marker.exists()


def test_weights_that_timm_loads(hostile, marker):
    config = dict(type='TimmClassifier', model_name='resnet18', checkpoint_path=str(hostile))
    with pytest.raises(Exception, match='weights_only=True blocked'):
        build_classifier(config, None)
    assert not marker.exists()


ARGUMENTS = {
    'train from it': ('train.py', [CONFIG], ['load_from={}']),
    'resume it': ('train.py', [CONFIG, '--resume', '{}'], []),
    'test it': ('test.py', [CONFIG, '{}'], []),
    'train from a backbone': (
        'train.py',
        [CONFIG],
        ['model.backbone.init_cfg.type=Pretrained', 'model.backbone.init_cfg.checkpoint={}'],
    ),
}


@pytest.mark.parametrize('tool', ARGUMENTS)
def test_the_tools_end_in_one_line(tool, hostile, marker, tmp_path):
    name, arguments, options = ARGUMENTS[tool]
    arguments = [str(argument).format(hostile) for argument in arguments]
    options = [*FEW, *(option.format(hostile) for option in options)]
    result = run_forked(name, *arguments, cwd=tmp_path, options=options)
    assert_one_line(result, 'hostile.pth is not loaded: it asks for builtins.exec')
    assert not marker.exists()


def test_show_tokens_ends_in_one_line_and_the_flag_trusts(hostile, marker, tmp_path):
    result = run_forked('analysis/show_tokens.py', CONFIG, hostile, cwd=tmp_path)
    assert_one_line(result, 'hostile.pth is not loaded: it asks for builtins.exec')
    assert not marker.exists()
    result = run_forked('analysis/show_tokens.py', CONFIG, hostile, '--trust-checkpoint', cwd=tmp_path)
    assert_one_line(result, "hostile.pth is not the model's")
    assert result.stderr.count('warning: --trust-checkpoint: code in checkpoints runs') == 1
    assert marker.exists()


def test_resume_does_not_run_a_config_from_a_checkpoint(tmp_path, marker):
    build_runner(tmp_path / 'a', SGD).train()
    checkpoint = torch.load(tmp_path / 'a/epoch_1.pth', weights_only=False)
    checkpoint['meta']['config'] = python_that_makes(marker)
    torch.save(checkpoint, tmp_path / 'a.pth')
    runner = build_runner(tmp_path / 'b', SGD, epochs=2, load_from=tmp_path / 'a.pth', resume=True)
    runner.train()
    assert (runner.epoch, runner.iter) == (2, 4)
    assert not marker.exists()
