"""Windowed models on images of any size, whatever size they were built for: published equations, timm, MMPretrain.

In float64, with gradients.
"""

import functools

import published_survey as published
import published_survey_second as second
import pytest
import timm
import torch
from mmpretrain.models import SwinTransformer, SwinTransformerV2
from survey_backbones import (
    Alone,
    assert_equal_with_gradients,
    assert_is_its_equations,
    bicubic,
    build,
    randomise,
    read,
)

from vt.registry import MODELS

# The size of poses, a larger one, one of whole windows, and one that nothing divides.
SIZES = [(256, 192), (320, 256), (448, 448), (233, 187)]
SLOW = pytest.mark.slow
# Models, and whether a small grid in training makes their windows smaller.
SHRINKS = {'swin-tiny': True, 'swinv2-tiny': True, 'cswin-tiny': False, 'shuffle-tiny': True, 'gg-tiny': True}
SHRINKS |= {'elsa-swin-tiny': True, 'hswin-tiny': True, 'msg-tiny': False}
pytestmark = pytest.mark.usefixtures('double_precision')


@pytest.mark.parametrize(
    ('size', 'is_built_for_it'),
    [
        (SIZES[0], True),
        (SIZES[3], False),
        *(pytest.param(size, False, marks=SLOW) for size in SIZES[:3]),
        *(pytest.param(size, True, marks=SLOW) for size in SIZES[1:]),
    ],
)
@pytest.mark.parametrize('name', SHRINKS)
def test_equations_at_other_sizes(name, is_built_for_it, size):
    torch.manual_seed(sum(size))
    stages = [0, 1] if name == 'hswin-tiny' else [0, 1, 2, 3]  # whose third has the pooled keys in its sixth block
    options = dict(channels=16) if name == 'msg-tiny' else {}
    backbone = build(name, size if is_built_for_it else (224, 224), stages, **options)
    for parameter in backbone.parameters():
        parameter.data.mul_(0.5)  # through four stages, larger ones amplify what is rounded
    options = dict(built=size if is_built_for_it else (224, 224)) if SHRINKS[name] else {}
    assert_is_its_equations(name, backbone, 1, size, stages, **options)


HIGH = dict(
    stem_channels=3,
    stages=[
        dict(modules=1, depth=1, channels=[4, 6], num_heads=[1, 2]),
        dict(modules=1, depth=1, channels=[4, 6, 8], num_heads=[1, 2, 2]),
        dict(modules=1, depth=1, channels=[4, 6, 8, 10], num_heads=[1, 2, 2, 2]),
    ],
)


@pytest.mark.parametrize('size', SIZES)
def test_resolutions_at_other_sizes(size):
    torch.manual_seed(sum(size))
    config = read('hrformer-small').backbone.to_dict() | HIGH
    backbone = randomise(MODELS.build(config | dict(out_indices=[0]))).eval()

    def theirs(x, weights):
        heads = [stage['num_heads'] for stage in HIGH['stages']]
        x = x.permute(0, 2, 3, 1)
        return second.hrformer(x, published.under(weights, 'parts.0'), heads)[0].movedim(3, 1)

    assert_equal_with_gradients(Alone(backbone), theirs, torch.randn(1, 3, *size))


def with_weights_of(theirs, name, tmp_path, channels, heads, **options):
    """Our model of a library's random weights, two blocks a stage."""
    randomise(theirs.double())
    theirs.eval()
    torch.save(theirs.state_dict(), tmp_path / 'theirs.pth')
    config = read(name).backbone.to_dict()
    stages = [
        stage | dict(channels=own, num_heads=number, depth=2)
        for stage, own, number in zip(config['stages'], channels, heads)
    ]
    init_cfg = dict(type='Pretrained', checkpoint=str(tmp_path / 'theirs.pth'))
    ours = MODELS.build(config | dict(stages=stages, init_cfg=init_cfg) | options)
    ours.init_weights()
    return ours.eval()


def assert_equal(found, expected, image, tolerance):
    direction = torch.randn_like(found)
    gradients = [torch.autograd.grad(out, image, direction)[0] for out in (found, expected)]
    for own, other in ((found, expected), gradients):
        torch.testing.assert_close(own, other, rtol=0, atol=tolerance * other.abs().max().item())


# Of two windows one covers a side of the last grid; at the size of poses a side is shorter, which MMPretrain's pads if
# asked. It has the offsets of the second Swin in float32.
@pytest.mark.parametrize('size', [(448, 448), (320, 256), 'two windows', (256, 192)])
@pytest.mark.parametrize('is_built_for_it', [True, False])
@pytest.mark.parametrize(
    ('name', 'kind', 'window', 'tolerance'),
    [('swin-tiny', SwinTransformer, 7, 1e-12), ('swinv2-tiny', SwinTransformerV2, 8, 1e-5)],
)
def test_swin_is_mmpretrains(name, kind, window, tolerance, size, is_built_for_it, tmp_path):
    """Built for these images, or for one window in the last stage, which is not shifted there."""
    torch.manual_seed(0)
    heads = [1, 2, 2, 4]
    arch = dict(embed_dims=6, depths=[2, 2, 2, 2], num_heads=heads)
    arch |= dict(extra_norm_every_n_blocks=0) if kind is SwinTransformerV2 else {}
    size = (64 * window, 32 * window) if size == 'two windows' else size
    options = dict(window_size=[8] * 4) if window == 8 else {}
    options |= dict(pad_small_map=size == (256, 192), out_indices=(3,), drop_path_rate=0.0)
    theirs = kind(arch=arch, img_size=32 * window, **options)
    built = dict(image_size=size if is_built_for_it else 32 * window, out_type='map')
    ours = with_weights_of(theirs, name, tmp_path, [6, 12, 24, 48], heads, **built)
    image = torch.randn(1, 3, *size).requires_grad_()
    assert_equal(ours(image)[0], theirs(image)[0], image, tolerance)


@pytest.mark.parametrize('size', SIZES)
@pytest.mark.parametrize('image_size', [224, 'its own'])
def test_twins_is_timms(size, image_size, tmp_path):
    torch.manual_seed(sum(size))
    channels, heads = (16, 32, 64, 128), (1, 2, 4, 8)
    widths = dict(embed_dims=channels, num_heads=heads, depths=(2, 2, 2, 2))
    theirs = timm.create_model('twins_svt_small', **widths)
    built = size if image_size == 'its own' else 224
    ours = with_weights_of(theirs, 'twins-svt-small', tmp_path, channels, heads, image_size=built)
    image = torch.randn(1, 3, *size).requires_grad_()
    assert_equal(ours(image)[0], theirs.forward_features(image).mean(dim=1), image, 1e-8)


@pytest.mark.parametrize('kind', ['AbsolutePosition', 'SeparatePosition'])
@pytest.mark.parametrize('size', [(7, 11), (4, 9), (5, 3), (3, 4), (9, 3)])
def test_positions_are_smoothed_only_where_a_side_is_shorter(kind, size):
    """A plain bicubic kernel on larger grids, as CeiT, LocalViT and T2T have it."""
    torch.manual_seed(sum(size))
    part = MODELS.build(dict(type=f'vt.{kind}', channels=3, size=(4, 6), num_class_tokens=2))

    def theirs(x, weights):
        vectors = weights['vectors'] if 'vectors' in weights else torch.cat([weights['classes'], weights['space']], 1)
        is_smooth = size[0] < 4 or size[1] < 6
        rows, columns = bicubic(4, size[0], is_smooth), bicubic(6, size[1], is_smooth)
        grid = torch.einsum('ri,cj,nijd->nrcd', rows, columns, vectors[:, 2:].unflatten(1, (4, 6)))
        return x + torch.cat([vectors[:, :2], grid.flatten(1, 2)], dim=1)

    part.forward = functools.partial(part.forward, size=size)
    assert_equal_with_gradients(part, theirs, torch.randn(2, 2 + size[0] * size[1], 3))


@pytest.mark.slow
def test_a_shift_is_not_frozen():
    """Compiled on a grid of one window, which is not shifted, and run on a larger one; exported, that is refused."""
    torch.manual_seed(0)
    stage = build('swin-tiny', (14, 14), [3])
    small, large = torch.randn(2, 5, 14, 14), torch.randn(2, 5, 28, 42)
    torch.compiler.reset()
    compiled = torch.compile(stage, backend='eager')
    with torch.no_grad():
        for maps in (small, large, small):
            torch.testing.assert_close(compiled(maps), stage(maps))
        exported = torch.export.export(stage, (small,)).module()
        torch.testing.assert_close(exported(small), stage(small))
        with pytest.raises(AssertionError, match='Guard failed'):
            exported(large)
