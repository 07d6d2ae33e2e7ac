"""Weights written for timm load there, strictly, and give equal logits."""

import pytest
import timm
import torch
from mmengine.config import Config
from tool_runner import assert_one_line, run

from vt.apis import find_config, get_model
from vt.apis.timm_format import publish_for_timm
from vt.errors import UserError


def config(name, classes=7, **backbone):
    """A published config with another head, and a backbone of fewer channels."""
    cfg = Config.fromfile(find_config(name))
    stages = backbone.pop('stages', None)
    if stages:
        for stage, own in zip(cfg.model.backbone.stages, stages):
            for key, value in own.items():
                stage[key] = value  # update would mix dicts
    cfg.model.backbone.update(backbone)
    cfg.model.head.num_classes = classes
    width = cfg.model.backbone.get('stages', [{}])[-1].get('channels')
    if width:
        cfg.model.head.in_channels = width
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


DEIT = dict(stages=[dict(channels=192, num_heads=3)])
EMBED = dict(type='vt.PatchEmbed', kernel_size=3, stride=2, padding=1, norm_cfg=dict(type='LN'))
PVT = dict(stages=[dict(channels=channels, depth=2, embed=EMBED) for channels in (32, 64, 160, 256)])
PVT['stages'][0]['embed'] = EMBED | dict(kernel_size=7, stride=4, padding=3)
CASES = {
    'deit_tiny_patch16_224': ('deit-small_16xb64-300e_in1k', DEIT),
    'pvt_v2_b0': ('pvtv2-b2_16xb64-300e_in1k', PVT),
    'swin_tiny_patch4_window7_224': ('swin-tiny_16xb64-300e_in1k', {}),
    'swinv2_tiny_window8_256': ('swinv2-tiny_16xb64-300e_in1k', {}),
    'mvitv2_tiny': ('mvitv2-tiny_16xb64-300e_in1k', {}),
    'resnet18': ('resnet18_8xb32-90e_in1k', {}),
}


@torch.no_grad()
def assert_equal_logits(ours, theirs, size=224, channels=3):
    images = torch.randn(2, channels, size, size, generator=torch.Generator().manual_seed(1)).double()
    expected, logits = ours.double()(images, mode='tensor'), theirs.double().eval()(images)
    assert (logits - expected).abs().max() <= 1e-12 * expected.abs().max()
    assert expected.std() > 1e-3  # there is something to compare


@pytest.mark.parametrize('name', CASES)
def test_timm_loads_the_file_and_gives_equal_logits(name, tmp_path):
    named, backbone = CASES[name]
    cfg = config(named, **backbone)
    model = trained(cfg, tmp_path / 'a.pth')
    path = publish_for_timm(name, cfg, tmp_path / 'a.pth', tmp_path / 'b.safetensors')
    theirs = timm.create_model(name, num_classes=7, checkpoint_path=str(path))
    assert_equal_logits(model, theirs, 256 if '256' in name else 224)


def test_four_channels_and_another_size_go_along(tmp_path):
    cfg = config('deit-small_16xb64-300e_in1k', **DEIT, image_size=64, in_channels=4)
    cfg.data_preprocessor = dict(num_classes=7, mean=[0.0] * 4, std=[1.0] * 4, to_rgb=False)
    steps = [dict(type='vt.LoadBands'), dict(type='Resize', scale=64), dict(type='PackInputs')]
    cfg.test_dataloader.dataset.pipeline = steps
    cfg.test_dataloader.dataset.pipeline[1]['scale'] = (64, 64)
    model = trained(cfg, tmp_path / 'a.pth')
    path = publish_for_timm('deit_tiny_patch16_224', cfg, tmp_path / 'a.pth', tmp_path / 'b.safetensors')
    options = dict(num_classes=7, img_size=64, in_chans=4, checkpoint_path=str(path))
    assert_equal_logits(model, timm.create_model('deit_tiny_patch16_224', **options), 64, 4)


@torch.no_grad()
def test_a_network_that_takes_bgr_becomes_one_of_rgb(tmp_path):
    cfg = config('resnet18_8xb32-90e_in1k')
    cfg.data_preprocessor.update(to_rgb=False)
    model = trained(cfg, tmp_path / 'a.pth').double()
    path = publish_for_timm('resnet18', cfg, tmp_path / 'a.pth', tmp_path / 'b.safetensors')
    theirs = timm.create_model('resnet18', num_classes=7, checkpoint_path=str(path)).double().eval()
    images = torch.rand(2, 3, 64, 64).double()
    torch.testing.assert_close(theirs(images.flip(1)), model(images, mode='tensor'), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('deit_small_patch16_224', 'is another network than this model: the first of'),
        ('deit_tiny_distilled_patch16_224', 'is another network than this model'),
        ('deit_tiny', 'timm cannot build deit_tiny like this model'),
        ('resnet18.nonsense', 'timm cannot build resnet18.nonsense like this model: Invalid pretrained tag'),
    ],
)
def test_another_network_is_refused_in_one_line(name, words, tmp_path):
    cfg = config('deit-small_16xb64-300e_in1k', **DEIT)
    trained(cfg, tmp_path / 'a.pth')
    with pytest.raises(UserError, match=words) as error:
        publish_for_timm(name, cfg, tmp_path / 'a.pth', tmp_path / 'b.safetensors')
    assert '\n' not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ['a.pth']


def test_equal_names_that_compute_something_else_are_refused(tmp_path):
    """ResNet-50 with its stride in the first convolution has timm's names and shapes."""
    cfg = config('resnet50_8xb32-90e_in1k', style='caffe')
    trained(cfg, tmp_path / 'a.pth')
    with pytest.raises(UserError, match='resnet50 gives other logits with these weights: they differ by'):
        publish_for_timm('resnet50', cfg, tmp_path / 'a.pth', tmp_path / 'b.safetensors')


def test_vt_resnet_has_no_such_form(tmp_path):
    cfg = config('vt-resnet18_8xb32-90e_in1k')
    trained(cfg, tmp_path / 'a.pth')
    with pytest.raises(UserError, match=r'resnet18 is another network than this model: .* backbone.layer4'):
        publish_for_timm('resnet18', cfg, tmp_path / 'a.pth', tmp_path / 'b.safetensors')


def test_the_tool_writes_a_file_and_asks_for_what_it_needs(tmp_path):
    trained(config('resnet18_8xb32-90e_in1k', classes=1000), tmp_path / 'a.pth')
    arguments = ['a.pth', 'b.safetensors', '--config', str(find_config('resnet18_8xb32-90e_in1k'))]
    assert_one_line(run('publish.py', *arguments, '--format', 'timm', cwd=tmp_path), '--model')
    result = run('publish.py', *arguments, '--format', 'timm', '--model', 'resnet18', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    timm.create_model('resnet18', checkpoint_path=str(tmp_path / result.stdout.split()[-1]))
