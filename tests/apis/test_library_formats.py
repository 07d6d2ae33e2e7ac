"""Weights written for another library load there, strictly, and give equal logits."""

import numpy as np
import pytest
import timm
import torch
import torchvision
from mmengine.config import Config
from PIL import Image
from safetensors.torch import load_file
from tool_runner import assert_one_line, run

from vt.apis import ClassificationInferencer, find_config, get_model
from vt.apis.library_formats import publish_as
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
    path = publish_as('timm', name, cfg, tmp_path / 'a.pth', tmp_path / 'b.safetensors')
    theirs = timm.create_model(name, num_classes=7, checkpoint_path=str(path))
    assert_equal_logits(model, theirs, 256 if '256' in name else 224)


def test_four_channels_and_another_size_go_along(tmp_path):
    cfg = config('deit-small_16xb64-300e_in1k', **DEIT, image_size=64, in_channels=4)
    cfg.data_preprocessor = dict(num_classes=7, mean=[0.0] * 4, std=[1.0] * 4, to_rgb=False)
    steps = [dict(type='vt.LoadBands'), dict(type='Resize', scale=64), dict(type='PackInputs')]
    cfg.test_dataloader.dataset.pipeline = steps
    cfg.test_dataloader.dataset.pipeline[1]['scale'] = (64, 64)
    model = trained(cfg, tmp_path / 'a.pth')
    path = publish_as('timm', 'deit_tiny_patch16_224', cfg, tmp_path / 'a.pth', tmp_path / 'b.safetensors')
    options = dict(num_classes=7, img_size=64, in_chans=4, checkpoint_path=str(path))
    assert_equal_logits(model, timm.create_model('deit_tiny_patch16_224', **options), 64, 4)


def test_torchvision_loads_a_resnet(tmp_path):
    cfg = config('resnet18_8xb32-90e_in1k')
    model = trained(cfg, tmp_path / 'a.pth')
    path = publish_as('torchvision', 'resnet18', cfg, tmp_path / 'a.pth', tmp_path / 'b.safetensors')
    theirs = torchvision.models.resnet18(num_classes=7)
    theirs.load_state_dict(load_file(path))
    assert_equal_logits(model, theirs)


@pytest.mark.slow
def test_torchvision_loads_a_model_of_videos(tmp_path):
    cfg = config('mvitv2-small-16x4_k400')
    model = trained(cfg, tmp_path / 'a.pth')
    path = publish_as('torchvision', 'mvit_v2_s', cfg, tmp_path / 'a.pth', tmp_path / 'b.safetensors')
    theirs = torchvision.models.get_model('mvit_v2_s', num_classes=7)
    theirs.load_state_dict(load_file(path))
    clip = torch.randn(1, 3, 16, 224, 224).double()
    with torch.no_grad():
        expected, logits = model.double()(clip, mode='tensor'), theirs.double().eval()(clip)
    assert (logits - expected).abs().max() <= 1e-5 * expected.abs().max()


def test_a_folder_for_the_hub_is_one_of_timm(tmp_path):
    cfg = config('pvtv2-b2_16xb64-300e_in1k', **PVT)
    model = trained(cfg, tmp_path / 'a.pth')
    folder = publish_as('huggingface', 'pvt_v2_b0', cfg, tmp_path / 'a.pth', tmp_path / 'hub')
    theirs = timm.create_model(f'local-dir:{folder}', pretrained=True)
    assert_equal_logits(model, theirs)
    assert theirs.pretrained_cfg['mean'] == pytest.approx((0.485, 0.456, 0.406))
    assert theirs.num_classes == 7


@torch.no_grad()
def test_timm_prepares_an_image_as_we_do(tmp_path):
    """Also for a network that takes BGR, whose first convolution is turned round."""
    cfg = config('resnet18_8xb32-90e_in1k')
    cfg.data_preprocessor.update(to_rgb=False, mean=[103.53, 116.28, 123.675], std=[57.375, 57.12, 58.395])
    cfg.test_dataloader.dataset.pipeline = [
        dict(type='LoadImageFromFile', imdecode_backend='pillow'),
        dict(type='ResizeEdge', scale=80, edge='short', backend='pillow', interpolation='bicubic'),
        dict(type='CenterCrop', crop_size=64),
        dict(type='PackInputs'),
    ]
    trained(cfg, tmp_path / 'a.pth')
    folder = publish_as('huggingface', 'resnet18', cfg, tmp_path / 'a.pth', tmp_path / 'hub')
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    image = Image.fromarray(pixels).resize((150, 100), Image.Resampling.BICUBIC)
    image.save(tmp_path / 'a.png')
    theirs = timm.create_model(f'local-dir:{folder}', pretrained=True).eval()
    prepare = timm.data.create_transform(**timm.data.resolve_data_config({}, model=theirs))
    (ours,) = ClassificationInferencer(cfg, tmp_path / 'a.pth')(str(tmp_path / 'a.png'))
    assert ours['pred_scores'] == pytest.approx(theirs(prepare(image)[None]).softmax(1)[0].numpy(), abs=1e-4)
    cfg.test_dataloader.dataset.pipeline[1]['edge'] = 'long'
    with pytest.raises(UserError, match='timm cannot prepare images as the test pipeline does'):
        publish_as('huggingface', 'resnet18', cfg, tmp_path / 'a.pth', tmp_path / 'other')


@pytest.mark.parametrize(
    ('library', 'name', 'words'),
    [
        ('timm', 'deit_small_patch16_224', 'is another network than this model: the first of'),
        ('timm', 'deit_tiny_distilled_patch16_224', 'is another network than this model'),
        ('timm', 'deit_tiny', 'timm cannot build deit_tiny like this model'),
        ('torchvision', 'vit_b_16', 'vit_b_16 is another network than this model'),
        ('torchvision', 'vit', 'torchvision cannot build vit like this model'),
    ],
)
def test_another_network_is_refused_in_one_line(library, name, words, tmp_path):
    cfg = config('deit-small_16xb64-300e_in1k', **DEIT)
    trained(cfg, tmp_path / 'a.pth')
    with pytest.raises(UserError, match=words) as error:
        publish_as(library, name, cfg, tmp_path / 'a.pth', tmp_path / 'b.safetensors')
    assert '\n' not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ['a.pth']


def test_equal_names_that_compute_something_else_are_refused(tmp_path):
    """ResNet-50 with its stride in the first convolution has torchvision's names and shapes."""
    cfg = config('resnet50_8xb32-90e_in1k', style='caffe')
    trained(cfg, tmp_path / 'a.pth')
    with pytest.raises(UserError, match='resnet50 gives other logits with these weights: they differ by'):
        publish_as('torchvision', 'resnet50', cfg, tmp_path / 'a.pth', tmp_path / 'b.safetensors')


def test_vt_resnet_has_no_such_form(tmp_path):
    cfg = config('vt-resnet18_8xb32-90e_in1k')
    trained(cfg, tmp_path / 'a.pth')
    with pytest.raises(UserError, match=r'resnet18 is another network than this model: .* backbone.layer4'):
        publish_as('timm', 'resnet18', cfg, tmp_path / 'a.pth', tmp_path / 'b.safetensors')


def test_the_tool_writes_a_file_and_asks_for_what_it_needs(tmp_path):
    trained(config('resnet18_8xb32-90e_in1k', classes=1000), tmp_path / 'a.pth')
    arguments = ['a.pth', 'b.safetensors', '--config', str(find_config('resnet18_8xb32-90e_in1k'))]
    assert_one_line(run('publish.py', *arguments, '--format', 'timm', cwd=tmp_path), '--model')
    result = run('publish.py', *arguments, '--format', 'timm', '--model', 'resnet18', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    timm.create_model('resnet18', checkpoint_path=str(tmp_path / result.stdout.split()[-1]))
