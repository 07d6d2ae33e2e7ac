"""Multiscale vision transformers: strides, public references, and what the backbone can do."""

from functools import cache

import pytest
import torch
import torchvision
from mmpretrain.models.backbones import MViT as MMPretrainMViT
from mmseg.models.necks import FPN
from survey_backbones import randomise

from vt.checkpoints.formats.recognise import to_own_names
from vt.models import MViT, TokenBackbone
from vt.models.mvit.mvit import multiscale_stages
from vt.models.visual_transformers.vt_fpn import VTFPN


def test_positions_have_the_parameters_of_table_11():
    positions = dict(none=None, space=dict(type='vt.SeparatePosition', time=False))
    positions |= dict(joint=dict(type='vt.AbsolutePosition'), apart=dict(type='vt.SeparatePosition'))
    with torch.device('meta'):
        models = {name: MViT(num_frames=16, position=position) for name, position in positions.items()}
    sizes = {name: sum(parameter.numel() for parameter in model.parameters()) for name, model in models.items()}
    head = 769 * 400
    assert (sizes['joint'] + head) / 1e6 == pytest.approx(38.6, rel=0.01)
    assert (sizes['apart'] + head) / 1e6 == pytest.approx(36.5, rel=0.01)
    vectors = {name: (size - sizes['none']) / 96 for name, size in sizes.items()}
    assert vectors == dict(none=0, space=1 + 56 * 56, joint=1 + 8 * 56 * 56, apart=1 + 56 * 56 + 8)


@pytest.mark.parametrize(
    ('options', 'strides'),
    [
        (dict(key_value_stride=(1, 4, 4), adaptive=False), [(1, 4, 4)] * 4),
        (dict(key_value_stride=(2, 4, 4), adaptive=False), [(2, 4, 4)] * 4),
        (dict(key_value_stride=(2, 4, 4)), [(2, 4, 4), (2, 2, 2), (2, 1, 1), (2, 1, 1)]),
        (dict(key_value_stride=(2, 8, 8)), [(2, 8, 8), (2, 4, 4), (2, 2, 2), (2, 1, 1)]),
        (dict(key_value_stride=[8, 4, 1, (2, 1, 1)], adaptive=False), [(1, 8, 8), (1, 4, 4), (1, 1, 1), (2, 1, 1)]),
        (dict(key_value_stride=8), [(8, 8), (4, 4), (2, 2), (1, 1)]),
        (dict(key_value_stride=2), [(2, 2), (1, 1), (1, 1), (1, 1)]),
        (dict(key_value_stride=1), [(1, 1)] * 4),
        ({}, [(1, 8, 8), (1, 4, 4), (1, 2, 2), (1, 1, 1)]),
        ({}, [(4, 4), (2, 2), (1, 1), (1, 1)]),
    ],
)
def test_strides_of_keys_and_values_are_those_of_tables_14_and_a3(options, strides):
    stages = multiscale_stages(len(strides[0]), 96, (1, 2, 11, 2), **options)
    found = [{attention['key_value']['stride'] for attention in stage['attention']} for stage in stages]
    assert found == [{stride} for stride in strides]


def randomised(model: torch.nn.Module) -> torch.nn.Module:
    randomise(model, 0.02).eval()  # MMPretrain's gives None
    return model


def small_video_twin(version: int, size: int, frames: int) -> torch.nn.Module:
    """torchvision's code of either version, four blocks for small clips."""
    v1, stride = version == 1, ([], [1, 2, 2]) if version == 1 else ([1, 1, 1], [1, 2, 2])
    rows = [  # heads, channels that come and go, strides of queries and of keys
        (1, 96, 192 if v1 else 96, stride[0], [1, 8, 8]),
        (2, 192 if v1 else 96, 384 if v1 else 192, stride[1], [1, 4, 4]),
        (4, 384 if v1 else 192, 768 if v1 else 384, stride[1], [1, 2, 2]),
        (8, 768 if v1 else 384, 768, stride[1], [1, 1, 1]),
    ]
    setting = [
        torchvision.models.video.mvit.MSBlockConfig(heads, come, go, [3] * len(q), [3] * 3, q, k)
        for heads, come, go, q, k in rows
    ]
    options = dict.fromkeys(('residual_pool', 'rel_pos_embed', 'proj_after_attn'), not v1)
    options |= dict(residual_with_cls_embed=False, num_classes=5)
    return torchvision.models.video.MViT((size, size), frames, setting, **options)


SMALL = dict(channels=96, depths=(1, 1, 1, 1))
V2 = dict(position=None, relative=True, residual=True, pool_every_query=True, grow_in='attention')
TWINS = {
    'torchvision, v1, small clips': (lambda: small_video_twin(1, 96, 6), (6, 96, 96), dict(arch=SMALL)),
    'torchvision, v2, small clips': (lambda: small_video_twin(2, 96, 6), (6, 96, 96), dict(arch=SMALL | V2)),
    'torchvision, mvit_v1_b': (torchvision.models.video.mvit_v1_b, (16, 224, 224), dict()),
    'torchvision, mvit_v2_s': (torchvision.models.video.mvit_v2_s, (16, 224, 224), dict(arch='v2-small')),
    'MMPretrain, MViT tiny': (lambda: MMPretrainMViT('tiny'), (224, 224), dict(arch='v2-tiny', class_tokens=0)),
}
LARGE = 'torchvision, mvit_v1_b', 'torchvision, mvit_v2_s'


@pytest.mark.parametrize('name', [pytest.param(name, marks=[pytest.mark.slow] * (name in LARGE)) for name in TWINS])
def test_a_public_checkpoint_gives_the_twins_logits(name, tmp_path):
    torch.manual_seed(0)
    make, size, options = TWINS[name]
    reference = randomised(make())
    torch.save(reference.state_dict(), tmp_path / 'reference.pth')
    options = dict(num_frames=size[0], image_size=size[1:]) | options if len(size) == 3 else options
    model = MViT(init_cfg=dict(type='Pretrained', checkpoint=str(tmp_path / 'reference.pth')), **options).eval()
    model.init_weights()
    images = torch.randn(1, 3, *size)
    _, renamed, _ = to_own_names(model, reference.state_dict())
    assert model.state_dict().keys() == {key for key in renamed if not key.startswith('head.')}
    with torch.no_grad():
        expected, (found,) = reference(images), model(images)
    if isinstance(expected, tuple):  # a backbone's map
        expected = expected[-1].mean(dim=(2, 3))
    else:
        found = found @ renamed['head.fc.weight'].T + renamed['head.fc.bias']
    assert (found - expected).abs().max() < 1e-4 * expected.abs().max()


def small(version: int = 1, **options) -> MViT:
    arch = dict(channels=8, depths=(1, 2, 2, 1)) | (V2 if version == 2 else {})
    return MViT(**dict(arch=arch, image_size=32, num_frames=4) | options)


@cache
def clip(batch: int = 2, frames: int | None = 4, size: tuple = (32, 32), dtype=torch.float32) -> torch.Tensor:
    sides = size if frames is None else (frames, *size)
    return torch.randn(batch, 3, *sides, dtype=dtype, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(('kernel', 'frames'), [(3, 4), ('s', 4), (3, None), (4, None)])
def test_other_sizes(kernel, frames):
    model = small(kernel=kernel, num_frames=frames, out_type='map', out_indices=(0, 1, 2, 3), norm_outputs=True).eval()
    with torch.no_grad():
        outs = model(clip(1, frames and 7, (45, 70)))
    for stage, out in enumerate(outs):
        round_up = 1 if kernel in ('s', 4) else -1  # even kernels leave out the last of an odd side
        sides = [-(-side // 4) for side in (45, 70)]
        for _ in range(stage):
            sides = [round_up * (round_up * side // 2) for side in sides]
        assert out.shape == (1, model.stages[stage].out_channels, *([4] if frames else []), *sides)
        assert out.isfinite().all()


@pytest.mark.parametrize(('version', 'channels', 'neck'), [(1, [16, 32, 64, 64], FPN), (2, [8, 16, 32, 64], VTFPN)])
def test_maps_of_an_image_go_through_a_neck(version, channels, neck):
    options = dict(num_frames=None, out_type='map', out_indices=(0, 1, 2, 3), norm_outputs=True)
    model = small(version, **options)
    assert [stage.out_channels for stage in model.stages] == channels
    outs = neck(in_channels=channels, out_channels=16, num_outs=4)(model(clip(2, None, (64, 96))))
    assert [tuple(out.shape[2:]) for out in outs] == [(16, 24), (8, 12), (4, 6), (2, 3)]
    sum(out.square().sum() for out in outs).backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())  # norms of outputs, too


@pytest.mark.parametrize('version', [1, 2])
def test_weights_of_another_clip_and_image_size_load(version, tmp_path):
    """What was learned of positions is resized when it is loaded as it is on the way."""
    torch.manual_seed(0)
    trained = randomised(small(version))
    torch.save(trained.state_dict(), tmp_path / 'small.pth')
    init = dict(type='Pretrained', checkpoint=str(tmp_path / 'small.pth'))
    model = small(version, num_frames=8, image_size=64, init_cfg=init).eval()
    model.init_weights()
    with torch.no_grad():
        torch.testing.assert_close(model(clip(1, 8, (64, 64))), trained(clip(1, 8, (64, 64))))


def test_one_scale_is_a_vit_of_cubes():
    """The same in the parts of the survey: :class:`vt.models.TokenBackbone` with attention that pools nothing."""
    torch.manual_seed(0)
    embed, position = dict(type='vt.CubeEmbed', kernel_size=(2, 8, 8)), dict(type='vt.AbsolutePosition')
    arch = dict(channels=16, num_heads=2, growth=1, depths=(2,), position=position)
    mvit = randomised(small(arch=arch, embed=embed, key_value_stride=1, kernel='s+1'))
    stage = dict(channels=16, num_heads=2, depth=2, embed=embed, position=position, class_tokens=1, norm=True)
    vit = TokenBackbone([stage], image_size=(4, 32, 32), out_type='class_tokens').eval()
    vit.load_state_dict(mvit.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(vit(clip()), mvit(clip()))
