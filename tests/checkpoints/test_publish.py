"""Published checkpoints: weights alone, with what they are; with ``--format timm`` as timm's own model loads them."""

import json
import os

import pytest
import timm
import torch
from checkpoints.small_models import Line, build_runner
from mmengine.config import Config
from safetensors import safe_open
from safetensors.torch import save_file
from tool_runner import ROOT, assert_one_line, call, succeed

import vt
from vt.apis import find_config, get_model
from vt.checkpoints.publish import publish
from vt.checkpoints.reading import content_digits, load_checkpoint
from vt.checkpoints.weights import load_weights
from vt.errors import UserError
from vt.serialization.timm_format import publish_for_timm


def written(folder, **more):
    meta = dict(epoch=2, iter=8, cfg='a = 1\nwork_dir = "/home/me"\nb = 2\n', dataset_meta=dict(classes=('x', 'y')))
    torch.save(dict(state_dict=Line().state_dict(), meta=meta, optimizer={}, message_hub={}) | more, folder / 'a.pth')
    return folder / 'a.pth'


def test_what_is_published_is_the_weights_and_what_they_are(tmp_path):
    """Shared and strided tensors, too."""
    weight = torch.arange(16.0).view(1, 4, 2, 2).to(memory_format=torch.channels_last)
    state = dict(a=weight, b=weight, c=weight[:, :1])
    checkpoint = written(tmp_path, state_dict=state)
    path = publish(checkpoint, tmp_path / 'name.safetensors')
    assert path.name == f'name-{content_digits(path.read_bytes())}.safetensors'
    with safe_open(path, 'pt') as file:
        metadata = file.metadata()
    assert metadata['config'] == 'a = 1\nb = 2\n'
    assert (metadata['vt'], metadata['torch']) == (vt.__version__, torch.__version__)
    assert json.loads(metadata['classes']) == ['x', 'y']
    assert (metadata['epoch'], metadata['iter']) == ('2', '8')
    loaded = load_checkpoint(path)
    assert loaded['meta']['dataset_meta']['classes'] == ['x', 'y']
    assert loaded['state_dict'].keys() == state.keys()
    assert all(torch.equal(loaded['state_dict'][name], tensor) for name, tensor in state.items())
    assert publish(checkpoint, tmp_path / 'name.safetensors') == path  # the same


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['a.pth', 'a.pth'], 'the name of a published checkpoint must end with .safetensors'),
        (['none.pth', 'a.safetensors'], 'there is no checkpoint none.pth'),
        (['a.pth'], 'give CHECKPOINT and OUT, or --show FILE'),
        (['--show', 'changed-01234567.safetensors'], 'the checksum of its content is'),
        (['a.pth', 'b.safetensors', '--config', 'a.py', '--format', 'timm'], '--model'),
        (['a.pth', 'b.safetensors', '--save-config', 'a.py'], '--save-config FILE.py requires --show FILE.safetensors'),
        (['--show', 'plain.safetensors', '--save-config', 'a.py'], 'plain.safetensors contains no config: use the'),
    ],
)
def test_mistakes_are_one_line(arguments, message, tmp_path):
    checkpoint = written(tmp_path)
    publish(checkpoint, tmp_path / 'b.safetensors').rename(tmp_path / 'changed-01234567.safetensors')
    save_file(Line().state_dict(), tmp_path / 'plain.safetensors')
    assert_one_line(call('publish.py', *arguments, cwd=tmp_path), message)


def test_the_metadata_is_printed_and_not_run(tmp_path):
    marker = tmp_path / 'marker'
    text = f'open({str(marker)!r}, "w")\n\x1b[2Jcleared = 1\n'
    checkpoint = written(tmp_path, meta=dict(cfg=text, dataset_meta=dict(classes=['x'])))
    path = publish(checkpoint, tmp_path / 'a.safetensors')
    printed = succeed(call('publish.py', '--show', path, cwd=tmp_path)).stdout
    assert printed.startswith('classes: ["x"]\nformat: pt\n')
    assert f'config:\nopen({str(marker)!r}, "w")\n\\x1b[2Jcleared = 1\n' in printed
    assert not marker.exists()


def test_a_run_may_begin_from_it(tmp_path):
    """It is no state of a training run."""
    state = torch.load(written(tmp_path))['state_dict']
    printed = succeed(call('publish.py', 'a.pth', 'b.safetensors', cwd=tmp_path)).stdout
    (path,) = tmp_path.glob('b-*.safetensors')
    first, _, save, predict = printed.splitlines()
    assert first == f'written to {path.name}'
    own = path.with_suffix('.py')
    assert predict == f'python {os.path.relpath(ROOT / "tools/predict.py", tmp_path)} {own.name} {path.name} IMAGE'
    succeed(call('publish.py', *save.split()[2:], cwd=tmp_path))  # as whoever gets the file does
    assert own.read_text() == 'a = 1\nb = 2\n'
    runner = build_runner(tmp_path / 'run', dict(type='SGD', lr=0.0), load_from=path)
    runner.train()
    assert torch.equal(runner.model.layer.weight, state['layer.weight'])
    model = Line()
    load_weights(model, path)
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())


def config(name, classes=7, **backbone):
    """A published config with another head, and a backbone of fewer channels."""
    cfg = Config.fromfile(find_config(name))
    for stage, own in zip(cfg.model.backbone.get('stages', []), backbone.pop('stages', [])):
        for key, value in own.items():
            stage[key] = value  # update would mix dicts
    cfg.model.backbone.update(backbone)
    width = cfg.model.backbone.get('stages', [{}])[-1].get('channels')
    cfg.model.head.update(dict(num_classes=classes) | (dict(in_channels=width) if width else {}))
    return cfg


def trained(cfg, path):
    """A model and a checkpoint of it, whose every tensor is random."""
    torch.manual_seed(0)
    model = get_model(cfg, False)
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point() and not name.startswith('data_preprocessor'):
            tensor.add_(0.05 * torch.rand(tensor.shape))
    torch.save(dict(state_dict=model.state_dict()), path)
    return model


DEIT = 'deit-small_16xb64-300e_in1k', dict(stages=[dict(channels=192, num_heads=3)])
RESNET = 'resnet18_8xb32-90e_in1k'
EMBED = dict(type='vt.PatchEmbed', kernel_size=3, stride=2, padding=1, norm_cfg=dict(type='LN'))
PVT = dict(stages=[dict(channels=channels, depth=2, embed=EMBED) for channels in (32, 64, 160, 256)])
PVT['stages'][0]['embed'] = EMBED | dict(kernel_size=7, stride=4, padding=3)
CASES = {
    'deit_tiny_patch16_224': DEIT,
    'pvt_v2_b0': ('pvtv2-b2_16xb64-300e_in1k', PVT),
    'swin_tiny_patch4_window7_224': ('swin-tiny_16xb64-300e_in1k', {}),
    'swinv2_tiny_window8_256': ('swinv2-tiny_16xb64-300e_in1k', {}),
    'mvitv2_tiny': ('mvitv2-tiny_16xb64-300e_in1k', {}),
}


@torch.no_grad()
def assert_timm_gives_our_logits(name, cfg, folder, flips=False, **options):
    model = trained(cfg, folder / 'a.pth').double()
    cfg.dump(folder / 'config.py')
    arguments = 'a.pth', 'b.safetensors', '--config', 'config.py', '--format', 'timm', '--model', name
    path = folder / succeed(call('publish.py', *arguments, cwd=folder)).stdout.split()[-1]
    theirs = timm.create_model(name, num_classes=7, checkpoint_path=str(path), **options).double().eval()
    side = options.get('img_size') or (256 if '256' in name else 64 if 'resnet' in name else 224)
    images = torch.rand(1, options.get('in_chans', 3), side, side, generator=torch.Generator().manual_seed(1)).double()
    expected, logits = model(images, mode='tensor'), theirs(images.flip(1) if flips else images)
    assert (logits - expected).abs().max() <= 1e-12 * expected.abs().max()
    assert expected.std() > 1e-3  # there is something to compare


@pytest.mark.slow  # the quick cases are below
@pytest.mark.parametrize('name', CASES)
def test_timm_loads_the_file_and_gives_equal_logits(name, tmp_path):
    named, backbone = CASES[name]
    assert_timm_gives_our_logits(name, config(named, **backbone), tmp_path)


def test_four_channels_and_another_size_go_along(tmp_path):
    cfg = config(DEIT[0], **DEIT[1], image_size=64, in_channels=4)
    cfg.data_preprocessor = dict(num_classes=7, mean=[0.0] * 4, std=[1.0] * 4, to_rgb=False)
    steps = [dict(type='vt.LoadBands'), dict(type='Resize', scale=(64, 64)), dict(type='PackInputs')]
    cfg.test_dataloader.dataset.pipeline = steps
    assert_timm_gives_our_logits('deit_tiny_patch16_224', cfg, tmp_path, img_size=64, in_chans=4)


def test_a_network_that_takes_bgr_becomes_one_of_rgb(tmp_path):
    cfg = config(RESNET)
    cfg.data_preprocessor.update(to_rgb=False)
    assert_timm_gives_our_logits('resnet18', cfg, tmp_path, flips=True)


@pytest.mark.parametrize(
    ('name', 'own', 'options', 'words'),
    [
        ('deit_small_patch16_224', *DEIT, 'has another architecture than this model: the first of'),
        ('deit_tiny', *DEIT, 'timm cannot build deit_tiny like this model'),
        # With other strides it has timm's names and shapes.
        ('resnet18', RESNET, dict(strides=(1, 2, 2, 1)), 'gives other logits with these weights: they diff'),
    ],
)
def test_another_network_is_refused_in_one_line(name, own, options, words, tmp_path):
    cfg = config(own, **options)
    trained(cfg, tmp_path / 'a.pth')
    with pytest.raises(UserError, match=words) as error:
        publish_for_timm(name, get_model(cfg, tmp_path / 'a.pth'), tmp_path / 'b.safetensors')
    assert '\n' not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ['a.pth']
