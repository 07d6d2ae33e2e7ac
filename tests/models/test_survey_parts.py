"""Parts of the survey's models against equations, in float64, and what their authors' code says of them."""

import functools
import math

import published_survey as published
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from survey_backbones import assert_equal_with_gradients, bicubic, build, on_grid, randomise, read
from torch import nn

from vt.checkpoints.grids import FileGrids
from vt.engine.counting import count_complexity
from vt.engine.hooks.redraw import RedrawHook
from vt.errors import UserError
from vt.models import HadamardAttention, PerformerAttention, ReductionCell, Windows, record_attention
from vt.models.survey.attentions.performer import TokenPerformer, draw_directions, log_features
from vt.models.survey.embeddings.progressive_sampling import sample
from vt.ops.neighbours import sum_at_once, sum_one_by_one
from vt.registry import MODELS

pytestmark = [pytest.mark.filterwarnings('ignore:Unnecessary conv bias'), pytest.mark.usefixtures('double_precision')]

SIDE, GRID = st.integers(1, 9), st.tuples(st.integers(1, 24), st.integers(1, 24))


@settings(max_examples=100)
@given(st.tuples(*[st.none() | SIDE] * 2) | SIDE, st.integers(0, 8), GRID, GRID, *[st.booleans()] * 3)
def test_windows(window, shift, built, other, dilated, shrink, centered):
    """Every token is in one window, and back in its place; what a shift brings together stays apart."""
    sides = window if isinstance(window, tuple) else (window, window)
    kept = tuple(min(side, max(built)) if side and shrink else side for side in sides)
    shift = shift % min(kept) if None not in kept and not dilated else 0
    part = Windows(window, dilated=dilated, shift=shift, size=built, shrink=shrink, centered=centered)
    for rows, columns in (built, other):
        size = rows, columns
        sides = tuple(side or whole for side, whole in zip(kept, size))
        roll = (shift, shift) if min(sides) != min(size) else (0, 0)
        expected = published.windows(size, sides, dilated, roll, centered)
        found = part.partition(torch.arange(1, rows * columns + 1)[None, :, None], size)[..., 0] - 1
        assert found[found >= 0].sort().values.tolist() == list(range(rows * columns))
        inside = [[0 <= i < rows and 0 <= j < columns for i, j in places] for places in expected]
        numbers = [[i * columns + j for i, j in places] for places in expected]
        assert found.tolist() == torch.where(torch.tensor(inside), torch.tensor(numbers), -1).tolist()
        x = torch.randn(2, rows * columns, 3)
        assert torch.equal(part.reverse(part.partition(x, size), size), x)
        mask = part.mask_of(size, torch.zeros(()))
        if not any(roll):
            assert mask is None
            continue
        hidden = torch.stack([published.wrapped(places, sides) for places in expected])
        assert torch.equal(mask[:, 0], torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf))


@pytest.mark.parametrize('size', [(3, 9), (8, 4)])
def test_pvts_positions_are_resized_linearly_side_by_side(size):
    config = read('pvt-small').backbone.every_stage.position
    part = randomise(MODELS.build(config | dict(channels=3, size=(5, 6), num_class_tokens=2)))

    def equation(x, weights):
        places = weights['vectors'][:, 2:].mT.unflatten(2, (5, 6))
        resized = nn.functional.interpolate(places, size, mode='bilinear').flatten(2).mT
        return x + torch.cat([weights['vectors'][:, :2], resized], dim=1)

    assert_equal_with_gradients(on_grid(part, size), equation, torch.randn(2, 2 + size[0] * size[1], 3))


@pytest.mark.parametrize('kind', ['AbsolutePosition', 'SeparatePosition'])
@pytest.mark.parametrize('size', [(7, 11), (5, 3)])
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

    assert_equal_with_gradients(on_grid(part, size), theirs, torch.randn(2, 2 + size[0] * size[1], 3))


def test_biases_take_the_size_of_another_window(tmp_path):
    def swin(window):
        config = read('swin-tiny').backbone.to_dict()
        for attention in config['every_stage']['attention']:
            windows = attention['windows']
            windows |= dict(window=window) | (dict(shift=window // 2) if 'shift' in windows else {})
        stages = [stage | dict(depth=2) for stage in config['stages']]
        return MODELS.build(config | dict(image_size=64, stages=stages))

    small, large = swin(2), swin(4)
    torch.save(small.state_dict(), tmp_path / 'small.pth')
    large.init_cfg = dict(type='Pretrained', checkpoint=str(tmp_path / 'small.pth'))
    large.init_weights()
    for name in (name for name in small.state_dict() if name.endswith('bias.table')):
        before, after = small.get_parameter(name), large.get_parameter(name)
        assert len(before) == 9
        if name.startswith('stages.3'):  # whose map is one window of 2x2 in both
            assert torch.equal(after, before)
            continue
        resize, maps = bicubic(3, 7), before.T.unflatten(1, (3, 3))
        torch.testing.assert_close(after.T.unflatten(1, (7, 7)), resize @ maps @ resize.T, atol=1e-6, rtol=1e-5)
    with pytest.raises(UserError, match='the grid of its 10 positions is unknown, and the model has 4x4'):
        large.stages[0].blocks[0].attention.part.bias.resized(torch.zeros(10, 3), 'table', FileGrids())


def test_a_continuous_bias_keeps_its_values_in_a_larger_window_or_grid():
    torch.manual_seed(0)
    bias = dict(type='vt.ContinuousPositionBias', num_heads=2)
    small = MODELS.build(bias | dict(window=(4, 4)))
    large = MODELS.build(bias | dict(window=(6, 8), trained_window=4))
    large.load_state_dict(small.state_dict())
    inside = [row * 8 + column for row in range(4) for column in range(4)]
    torch.testing.assert_close(large((6, 8))[:, inside][..., inside], small((4, 4)))
    attention = dict(type='vt.WindowAttention', bias=dict(type='vt.ContinuousPositionBias'))
    part = randomise(MODELS.build(attention | dict(channels=8, num_heads=2, size=(8, 8))))
    larger, trained = part.bias((12, 8)), part.bias((8, 8))
    torch.testing.assert_close(larger.unflatten(2, (12, 8))[:, 0, :8].flatten(1), trained[:, 0])


def test_a_cosine_counts_a_hundred_times_at_most():
    part = MODELS.build(dict(type='vt.CosineAttention', channels=8, num_heads=2, size=(4, 4)))
    x = torch.randn(1, 16, 8)
    part.log_scale.data[:] = math.log(100)
    expected = part(x, (4, 4))
    part.log_scale.data[:] = 5.0
    torch.testing.assert_close(part(x, (4, 4)), expected)


@pytest.mark.parametrize(('kernel_size', 'size'), [(3, (1, 1)), (7, (20, 2))])
@pytest.mark.parametrize(('dtype', 'tolerance'), [(torch.float64, 1e-13), (torch.bfloat16, 0.05)])
def test_neighbours_in_one_product_are_those_one_by_one(kernel_size, size, dtype, tolerance):
    torch.manual_seed(0)
    maps = torch.randn(2, 3, kernel_size**2, *size).softmax(dim=2)
    v, grad = torch.randn(2, 12, *size), torch.randn(2, 3, 4, *size)
    found = []
    for add in (sum_one_by_one, sum_at_once):
        inputs = [each.to(dtype).requires_grad_() for each in (maps, v)]
        read = add(*inputs)
        found.append([read, *torch.autograd.grad(read, inputs, grad.to(dtype))])
    torch.testing.assert_close(*found, atol=tolerance, rtol=tolerance)


def test_products_with_tokens_that_are_no_neighbours_are_not_counted():
    part, tokens = HadamardAttention(12, 3, kernel_size=3, group_width=4), 20
    linear, convolutions = 12 * (8 + 8 + 12) + 12 * 12, 9 * (8 * 4 + 12) + 8 * 3 * 9
    assert count_complexity(part, torch.randn(1, tokens, 12), (4, 5)).flops == tokens * (linear + convolutions)
    assert part.training


def test_hrformer_gives_its_maps_of_images_of_any_size():
    backbone = build('hrformer-small', out_indices=[0, -1], drop_path_rate=0.3)
    with record_attention(backbone) as records:
        fine, coarse = backbone(torch.randn(1, 3, 90, 70))
    assert fine.shape == (1, 4, 23, 18)
    assert coarse.shape == (1, 8, 6, 5)
    assert records['stages.0.0.branches.0.0.attention.part'].attention.shape[1] == 1
    branches = [module.branches[0] for stage in backbone.stages for module in stage]
    rates = [block.attention.drop_path.drop_prob for branch in branches for block in branch]
    assert rates == pytest.approx([0, 0.1, 0.2, 0.3])


def test_points_are_sampled_between_pixels_and_zeros_outside():
    torch.manual_seed(0)
    x, points = torch.randn(2, 3, 4, 5), torch.rand(2, 30, 2) * 8 - 2
    torch.testing.assert_close(sample(x, points), published.at(x.permute(0, 2, 3, 1), points))


def test_positive_features_are_exact_in_expectation():
    """The kernel ``exp(x . y)``, of orthogonal directions and of more than there are dimensions."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 4, generator=generator) / 3
    products = []
    for _ in range(1000):
        directions = draw_directions(6, 4, generator)
        products.append(log_features(x, directions).exp() @ log_features(y, directions).exp())
    products = torch.stack(products)
    assert abs(products.mean() - (x @ y).exp()) < 4 * products.std() / len(products) ** 0.5 < 0.05


def test_an_epsilon_stands_where_the_authors_have_it():
    """ViTAE's code adds it to what a query's products are divided by."""
    part = on_grid(randomise(TokenPerformer(5, 6, epsilon=0.1)), (2, 3))
    assert_equal_with_gradients(part, functools.partial(published.token_performer, epsilon=0.1), torch.randn(2, 6, 5))


def test_features_of_cells_are_orthogonal_and_of_one_length():
    """Drawn at first and again: ``orthogonal * sqrt(m)`` of T2T's and ViTAE's token_performer.py."""
    part = ReductionCell(3, 12, kernel_size=7, stride=4, dilations=[1]).attend
    for _ in range(2):
        torch.testing.assert_close(part.directions @ part.directions.mT, 6 * torch.eye(6))
        before = part.directions.clone()
        part.redraw()
        assert not torch.equal(part.directions, before)


def test_features_are_exact_under_autocast_and_finite_for_large_logits():
    torch.manual_seed(0)
    part = PerformerAttention(32, 2).float()
    x = torch.randn(2, 20, 32, dtype=torch.float32)
    with torch.autocast('cpu', torch.bfloat16):
        found = part(x, (4, 5))
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), part(x, (4, 5)), atol=0.02, rtol=0.02)
    assert part(100 * x, (4, 5)).isfinite().all()


def test_features_are_redrawn_on_request_alike_in_all_processes():
    model = nn.Sequential(PerformerAttention(8, 2), PerformerAttention(8, 2))
    before = [part.directions.clone() for part in model]

    def drawn_at(step):
        RedrawHook(interval=2).after_train_iter(type('Runner', (), dict(iter=step, model=model))(), step)
        return [part.directions.clone() for part in model]

    assert all(map(torch.equal, drawn_at(0), before))
    first = drawn_at(1)
    assert not torch.equal(first[0], before[0])
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(drawn_at(3)[0], first[0])
    assert torch.equal(drawn_at(1)[0], first[0])
