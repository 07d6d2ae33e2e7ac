"""Published checkpoints: weights alone, with what they are, read by every tool that takes a checkpoint."""

import json

import pytest
import torch
from forked_tools import run_forked
from mmengine.config import Config
from safetensors import safe_open
from tool_runner import ROOT, SMALL_CLASSIFIER, assert_one_line

import vt
from vt.apis import get_model
from vt.checkpoints.publishing import publish
from vt.checkpoints.reading import content_digits, load_checkpoint
from vt.checkpoints.weights import load_weights

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
FEW = ['train_cfg.max_epochs=1', *SMALL_CLASSIFIER]


def written(folder, **more):
    layer = torch.nn.Linear(3, 2)
    state = layer.state_dict()
    meta = dict(epoch=2, iter=8, cfg='a = 1\nwork_dir = "/home/me"\nb = 2\n', dataset_meta=dict(classes=('x', 'y')))
    torch.save(dict(state_dict=state, meta=meta, optimizer={}, message_hub={}) | more, folder / 'a.pth')
    return layer, folder / 'a.pth'


def test_what_is_published_is_the_weights_and_what_they_are(tmp_path):
    layer, checkpoint = written(tmp_path)
    path = publish(checkpoint, tmp_path / 'name.safetensors')
    assert path.name == f'name-{content_digits(path.read_bytes())}.safetensors'
    with safe_open(path, 'pt') as file:
        assert set(file.keys()) == {'weight', 'bias'}
        metadata = file.metadata()
    assert metadata['config'] == 'a = 1\nb = 2\n'
    assert metadata['vt'] == vt.__version__
    assert metadata['torch'] == torch.__version__
    assert json.loads(metadata['classes']) == ['x', 'y']
    assert (metadata['epoch'], metadata['iter']) == ('2', '8')
    loaded = load_checkpoint(path)
    assert loaded['meta']['dataset_meta']['classes'] == ['x', 'y']
    other = torch.nn.Linear(3, 2)
    load_weights(other, path)
    assert torch.equal(other.weight, layer.weight)
    assert publish(checkpoint, tmp_path / 'name.safetensors') == path  # the same


def test_shared_and_strided_tensors_are_published(tmp_path):
    weight = torch.arange(16.0).view(1, 4, 2, 2).to(memory_format=torch.channels_last)
    _, checkpoint = written(tmp_path, state_dict=dict(a=weight, b=weight, c=weight[:, :1]))
    path = publish(checkpoint, tmp_path / 'a.safetensors')
    state = load_checkpoint(path)['state_dict']
    assert torch.equal(state['a'], weight)
    assert torch.equal(state['b'], weight)
    assert torch.equal(state['c'], weight[:, :1])


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['a.pth', 'a.pth'], 'the name of a published checkpoint must end with .safetensors'),
        (['none.pth', 'a.safetensors'], 'there is no checkpoint none.pth'),
        (['a.pth'], 'give CHECKPOINT and OUT, or --show FILE'),
        (['--show', 'a.pth'], 'a.pth is not a .safetensors file'),
        (['--show', 'changed-01234567.safetensors'], 'its content has the digits'),
    ],
)
def test_mistakes_are_one_line(arguments, message, tmp_path):
    _, checkpoint = written(tmp_path)
    publish(checkpoint, tmp_path / 'b.safetensors').rename(tmp_path / 'changed-01234567.safetensors')
    assert_one_line(run_forked('publish.py', *arguments, cwd=tmp_path), message)


def test_the_metadata_is_printed_and_not_run(tmp_path):
    marker = tmp_path / 'marker'
    text = f'open({str(marker)!r}, "w")\n\x1b[2Jcleared = 1\n'
    _, checkpoint = written(tmp_path, meta=dict(cfg=text, dataset_meta=dict(classes=['x'])))
    path = publish(checkpoint, tmp_path / 'a.safetensors')
    result = run_forked('publish.py', '--show', path, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith('classes: ["x"]\nformat: pt\n')
    assert f'config:\nopen({str(marker)!r}, "w")\n\\x1b[2Jcleared = 1\n' in result.stdout
    assert not marker.exists()


def test_tools_take_it(tmp_path):
    """It is no state of a training run, but one may begin from it."""
    cfg = Config.fromfile(CONFIG)
    cfg.merge_from_dict({name: int(size) for name, size in (option.split('=') for option in SMALL_CLASSIFIER)})
    torch.save(dict(state_dict=get_model(cfg).state_dict()), tmp_path / 'a.pth')
    result = run_forked('publish.py', 'a.pth', 'b.safetensors', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    (path,) = tmp_path.glob('b-*.safetensors')
    assert result.stdout == f'written to {path.name}\n'
    result = run_forked('test.py', CONFIG, path, cwd=tmp_path, options=FEW)
    assert result.returncode == 0, result.stderr
    result = run_forked('train.py', CONFIG, cwd=tmp_path, options=[*FEW, f'load_from={path}'])
    assert result.returncode == 0, result.stderr
    assert f'Load checkpoint from {path}' in result.stdout
