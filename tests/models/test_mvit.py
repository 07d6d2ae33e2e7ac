"""Multiscale vision transformers: strides, public code, other sizes, and their parts' equations."""

import math
from functools import cache

import published_mvit as published
import pytest
import torch
import torchvision
from mmpretrain.models.backbones import MViT as MMPretrainMViT
from survey_backbones import assert_equal_with_gradients, on_grid, randomise

from vt.checkpoints.formats.recognise import to_own_names
from vt.models import AbsolutePosition, DecomposedRelativePosition, MultiscaleBlock, PoolingAttention, SeparatePosition
from vt.models.mvit.mvit import MViT, multiscale_stages
from vt.models.mvit.token_pooling import kernel_sides

pytestmark = pytest.mark.usefixtures('double_precision')


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
        (dict(key_value_stride=(2, 4, 4), adaptive=False), [(2, 4, 4)] * 4),
        (dict(key_value_stride=(2, 4, 4)), [(2, 4, 4), (2, 2, 2), (2, 1, 1), (2, 1, 1)]),
        (dict(key_value_stride=[8, 4, 1, (2, 1, 1)], adaptive=False), [(1, 8, 8), (1, 4, 4), (1, 1, 1), (2, 1, 1)]),
        (dict(key_value_stride=8), [(8, 8), (4, 4), (2, 2), (1, 1)]),
        ({}, [(1, 8, 8), (1, 4, 4), (1, 2, 2), (1, 1, 1)]),
        ({}, [(4, 4), (2, 2), (1, 1), (1, 1)]),
    ],
)
def test_strides_of_keys_and_values_are_those_of_tables_14_and_a3(options, strides):
    stages = multiscale_stages(len(strides[0]), 96, (1, 2, 11, 2), **options)
    found = [{attention['key_value']['stride'] for attention in stage['attention']} for stage in stages]
    assert found == [{stride} for stride in strides]


def small_video_twin(version: int, size: int, frames: int) -> torch.nn.Module:
    """torchvision's code of either version, four blocks for small clips."""
    v1, stride = version == 1, ([], [1, 2, 2]) if version == 1 else ([1, 1, 1], [1, 2, 2])
    rows = [  # heads, channels that come and go, strides of queries and of keys
        (1, 96, 192 if v1 else 96, stride[0], [1, 8, 8]),
        (2, 192 if v1 else 96, 384 if v1 else 192, stride[1], [1, 4, 4]),
        (4, 384 if v1 else 192, 768 if v1 else 384, stride[1], [1, 2, 2]),
        (8, 768 if v1 else 384, 768, stride[1], [1, 1, 1]),
    ]
    block = torchvision.models.video.mvit.MSBlockConfig
    setting = [block(heads, come, go, [3] * len(q), [3] * 3, q, k) for heads, come, go, q, k in rows]
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
    reference = randomise(make(), 0.02)
    reference.eval()  # MMPretrain's gives None
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
    assert (found - expected).abs().max() < 1e-10 * expected.abs().max()


def small(version: int = 1, **options) -> MViT:
    arch = dict(channels=8, depths=(1, 2, 2, 1)) | (V2 if version == 2 else {})
    return MViT(**dict(arch=arch, image_size=32, num_frames=4) | options)


@cache
def clip(batch: int = 2, frames: int | None = 4, size: tuple = (32, 32)) -> torch.Tensor:
    sides = size if frames is None else (frames, *size)
    return torch.randn(batch, 3, *sides, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(('kernel', 'frames'), [(3, 4), (4, None)])
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


@pytest.mark.parametrize('version', [1, 2])
def test_weights_of_another_clip_and_image_size_load(version, tmp_path):
    """What was learned of positions is resized when it is loaded as it is on the way."""
    torch.manual_seed(0)
    trained = randomise(small(version), 0.02).eval()
    torch.save(trained.state_dict(), tmp_path / 'small.pth')
    init = dict(type='Pretrained', checkpoint=str(tmp_path / 'small.pth'))
    model = small(version, num_frames=8, image_size=64, init_cfg=init).eval()
    model.init_weights()
    with torch.no_grad():
        torch.testing.assert_close(model(clip(1, 8, (64, 64))), trained(clip(1, 8, (64, 64))))


def options(kernel, stride, mode='convolution'):
    return dict(kernel=kernel_sides(kernel, stride), stride=stride, mode=mode)


NONE = options(1, (1, 1))
POOLINGS = [  # of size, of queries, of keys and values
    ((5, 7), options(3, (2, 2)), options(3, (4, 4))),
    ((4, 6), options('s', (2, 2), 'average'), options('s', (2, 2), 'average')),
    ((7, 5), options('2s+1', (2, 2), 'average'), options('2s+1', (2, 2), 'max')),
    ((3, 3), NONE, NONE),
    ((2, 4, 6), options(3, (1, 2, 2)), options(3, (1, 4, 4))),
    ((5, 2, 3), options(3, (2, 1, 1)), options(3, (2, 2, 2))),
    ((4, 4, 3), options('s+1', (1, 2, 2), 'max'), options('s+1', (2, 2, 2), 'max')),
    ((1, 4, 4), options(3, (1, 2, 2)), options((3, 1, 1), (3, 2, 2))),
]


@pytest.mark.parametrize(('size', 'query', 'key_value'), POOLINGS)
@pytest.mark.parametrize(('version', 'num_class_tokens'), [(1, 1), (2, 0), (2, 2)])
def test_pooling_attention_is_its_equation(size, query, key_value, num_class_tokens, version):
    torch.manual_seed(sum(size) + version)
    extras = dict(relative=version == 2, residual=version == 2)
    part = PoolingAttention(6, 2, size, query, key_value, out_channels=8 if version == 2 else None, **extras)
    part = randomise(part)

    def equation(x, w):
        return torch.stack([published.pooling_attention(each, size, w, 2, query, key_value, **extras) for each in x])

    assert_equal_with_gradients(on_grid(part, size), equation, torch.randn(2, num_class_tokens + math.prod(size), 6))


def test_the_attention_that_is_read_is_the_one_that_is_used():
    torch.manual_seed(0)
    size, query, key_value = (2, 4, 4), options(3, (1, 2, 2)), options(3, (1, 2, 1))
    part = randomise(PoolingAttention(6, 2, size, query, key_value, relative=True))
    x = torch.randn(2, 33, 6)
    maps = part.attention(x, size)
    assert maps.shape == (2, 2, 1 + 8, 1 + 16)
    values = part.pool_value(part.qkv(x).chunk(3, dim=-1)[2], size).unflatten(-1, (2, 3)).transpose(1, 2)
    torch.testing.assert_close(part.proj((maps @ values).transpose(1, 2).flatten(2)), part(x, size))


@pytest.mark.parametrize('skip', ['normalised', 'raw', 'none'])
@pytest.mark.parametrize('grow_in', ['attention', 'feed_forward'])
@pytest.mark.parametrize('size', [(5, 4), (2, 4, 3)])
def test_a_block_is_its_equation(size, grow_in, skip):
    torch.manual_seed(sum(size))
    ones = (1,) * (len(size) - 2)
    query, key_value = options(3, (*ones, 2, 2)), options('s+1', (*ones, 2, 2), 'max')
    attention = dict(type='vt.PoolingAttention', query=query, key_value=key_value)
    growth = dict(out_channels=6, grow_in=grow_in, skip=skip)
    norm = dict(norm_cfg=dict(type='LN', eps=1e-6))
    part = randomise(MultiscaleBlock(4, size, 2, attention, dict(type='vt.FeedForward', ratio=2), **growth, **norm))
    assert part.out_size(size) == published.pooled_size(size, query['kernel'], query['stride'])
    growth |= dict(heads=2, key_value=key_value, relative=False, residual=False)

    def equation(x, w):
        return torch.stack([published.block(each, size, w, query, **growth) for each in x])

    assert_equal_with_gradients(on_grid(part, size), equation, torch.randn(2, 1 + math.prod(size), 4))


def test_positions_of_space_and_time_are_added_and_class_tokens_have_their_own():
    part = randomise(SeparatePosition(5, (2, 3, 4), num_class_tokens=1))
    x = torch.randn(2, 1 + 24, 5)
    expected = x.clone()
    expected[:, 0] += part.classes[0, 0]
    for frame in range(2):
        for place in range(12):
            expected[:, 1 + 12 * frame + place] += part.time[0, frame] + part.space[0, place]
    torch.testing.assert_close(part(x, (2, 3, 4)), expected)
    without = SeparatePosition(5, (2, 3, 4), time=False)
    torch.testing.assert_close(without(x[:, 1:], (2, 3, 4)), x[:, 1:] + without.space.repeat(1, 2, 1))
    assert part(torch.zeros(1, 1 + 3 * 20, 5), (3, 4, 5)).isfinite().all()


def test_positions_of_another_grid_lie_between_the_learned_ones():
    part = SeparatePosition(1, (4, 2, 2))
    part.time.data = torch.arange(4.0).reshape(1, 4, 1)
    part.space.data.fill_(10)
    resized = part(torch.zeros(1, 8 * 4, 1), (8, 2, 2)).reshape(8, 4)
    torch.testing.assert_close(resized[:, 0], torch.tensor([0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]) + 10)
    joint = AbsolutePosition(1, (4, 2, 2), num_class_tokens=1)
    joint.vectors.data = torch.cat([torch.tensor([-5.0]), torch.arange(4.0).repeat_interleave(4)]).reshape(1, 17, 1)
    resized = joint(torch.zeros(1, 1 + 8 * 4, 1), (8, 2, 2)).flatten()
    torch.testing.assert_close(resized[1::4][:8], torch.tensor([0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]))
    assert resized[0] == -5


def test_relative_positions_of_another_grid_lie_between_the_learned_ones():
    part = DecomposedRelativePosition(1, (4, 4), (2, 2))
    part.tables['height'].data = torch.arange(7.0)[:, None]
    torch.testing.assert_close(part.vectors('height', 4, 2)[..., 0], torch.tensor([[2.0, 0], [3, 1], [4, 2], [5, 3]]))
    finer = part.vectors('height', 7, 7)[..., 0]  # 13 vectors in the place of 7
    assert finer.shape == (7, 7)
    assert (finer.diff(dim=0) >= 0).all()
    assert (finer.diff(dim=1) <= 0).all()
