"""The parts of multiscale vision transformers against published equations, in float64: outputs and gradients."""

import math

import published_mvit as published
import pytest
import torch
from comparisons import assert_same
from survey_backbones import randomise
from torch.nn.attention import SDPBackend, sdpa_kernel

from vt.models import AbsolutePosition, DecomposedRelativePosition, MultiscaleBlock, PoolingAttention, SeparatePosition
from vt.models.mvit.token_pooling import kernel_sides

pytestmark = pytest.mark.usefixtures('double_precision')


def assert_equal_with_gradients(part, equation, x, size):
    """Outputs and gradients of the input and all parameters; ``equation`` takes one sample and the weights."""
    x.requires_grad_()
    weights = part.state_dict(keep_vars=True)
    theirs = torch.stack([equation(sample, weights) for sample in x])
    assert_same(part(x, size), theirs, [x, *part.parameters()])


def options(kernel, stride, mode='convolution'):
    return dict(kernel=kernel_sides(kernel, stride), stride=stride, mode=mode)


NONE2, NONE3 = options(1, (1, 1)), options(1, (1, 1, 1))
POOLINGS = [  # of size, of queries, of keys and values
    ((5, 7), options(3, (2, 2)), options(3, (4, 4))),
    ((4, 3), NONE2, options(3, (1, 1))),
    ((6, 4), options('s+1', (2, 2), 'max'), options('s+1', (2, 2), 'max')),
    ((4, 6), options('s', (2, 2), 'average'), options('s', (2, 2), 'average')),
    ((7, 5), options('2s+1', (2, 2), 'average'), options('2s+1', (2, 2), 'max')),
    ((3, 3), NONE2, NONE2),
    ((1, 6), options(3, (1, 1)), options(3, (1, 2))),
    ((2, 4, 6), options(3, (1, 2, 2)), options(3, (1, 4, 4))),
    ((2, 3, 3), NONE3, options(3, (1, 1, 1))),
    ((5, 2, 3), options(3, (2, 1, 1)), options(3, (2, 2, 2))),
    ((4, 4, 3), options('s+1', (1, 2, 2), 'max'), options('s+1', (2, 2, 2), 'max')),
    ((4, 2, 4), options('s', (2, 1, 1)), options('s', (2, 2, 2))),
    ((1, 4, 4), options(3, (1, 2, 2)), options((3, 1, 1), (3, 2, 2))),
    ((7, 1, 2), NONE3, options(3, (3, 1, 1))),
    ((3, 4, 4), options('2s+1', (1, 2, 2)), options('s+1', (2, 2, 2), 'average')),
]


@pytest.mark.parametrize(('size', 'query', 'key_value'), POOLINGS)
@pytest.mark.parametrize(('version', 'num_class_tokens'), [(1, 1), (2, 0), (2, 2)])
def test_pooling_attention_is_its_equation(size, query, key_value, num_class_tokens, version):
    torch.manual_seed(sum(size) + version)
    extras = dict(relative=version == 2, residual=version == 2)
    part = PoolingAttention(6, 2, size, query, key_value, out_channels=8 if version == 2 else None, **extras)
    part = randomise(part)

    def equation(x, w):
        return published.pooling_attention(x, size, w, 2, query, key_value, **extras)

    assert_equal_with_gradients(part, equation, torch.randn(2, num_class_tokens + math.prod(size), 6), size)


@pytest.mark.parametrize('size', [(6, 4), (3, 4, 6)])
def test_relative_positions_are_a_mask_where_attention_is_not_fused(size):
    torch.manual_seed(0)
    ones = (1,) * (len(size) - 2)
    pools = options(3, (*ones, 2, 2)), options(3, (*ones, 1, 2))
    part = randomise(PoolingAttention(6, 2, size, *pools, relative=True, residual=True))
    x = torch.randn(2, 1 + math.prod(size), 6)
    with torch.no_grad():
        expected = part(x, size)
        with sdpa_kernel(SDPBackend.MATH):
            torch.testing.assert_close(part(x, size), expected)


def test_the_attention_that_is_read_is_the_one_that_is_used():
    torch.manual_seed(0)
    size, query, key_value = (2, 4, 4), options(3, (1, 2, 2)), options(3, (1, 2, 1))
    part = randomise(PoolingAttention(6, 2, size, query, key_value, relative=True))
    x = torch.randn(2, 33, 6)
    maps = part.attention(x, size)
    assert maps.shape == (2, 2, 1 + 8, 1 + 16)
    values = part.pool_value(part.qkv(x).chunk(3, dim=-1)[2], size).unflatten(-1, (2, 3)).transpose(1, 2)
    read = (maps @ values).transpose(1, 2).flatten(2)
    torch.testing.assert_close(part.proj(read), part(x, size))


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

    def equation(x, w):
        return published.block(
            x, size, w, query, heads=2, key_value=key_value, relative=False, residual=False, **growth
        )

    assert_equal_with_gradients(part, equation, torch.randn(2, 1 + math.prod(size), 4), size)


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
